import type { Backend } from '@firecrew/backend';
import { CodedError, messageOf } from '@firecrew/base';
import { findArtifact, imagesOf } from '../images/image-store.ts';
import { checkBackends } from '../settings/backend-files.ts';
import type { Settings } from '../settings/settings.ts';
import { type CommandContext, existingHomeOf, homePathOf, settingsHere } from './context.ts';
import type { Finding } from './doctor.ts';

const check = 'backends';

/** Whether the manifests that the settings of the home name can be used, and what each of them lacks here. */
export async function probeBackends(context: CommandContext): Promise<Finding[]> {
  const root = homePathOf(context);
  try {
    const settings = settingsHere(context);
    const backends = checkBackends(settings);
    if (backends.length === 0) return [{ check, state: 'ok', detail: 'command alone', fix: null }];
    const images = existingHomeOf(context) === undefined ? undefined : imagesOf(context);
    const faultOf = async (image: string) =>
      images === undefined ? 'there is no home yet' : await findArtifact(images, image).then(() => undefined, messageOf);
    return await Promise.all(
      backends.map(async (backend) => await judgeBackend(backend, settings, `$EDITOR ${root}/config.json`, faultOf)),
    );
  } catch (error) {
    const file = error instanceof CodedError && error.code === 'backend_unreadable' ? error.id : undefined;
    return [{ check, state: 'problem', detail: messageOf(error), fix: `$EDITOR ${file ?? `${root}/config.json`}` }];
  }
}

/** What one lacks on this host. It may be there on another node, so that is no problem by itself. */
export async function judgeBackend(
  { name, image, modelRoute }: Pick<Backend, 'name' | 'image' | 'modelRoute'>,
  { modelRoutes = {} }: Pick<Settings, 'modelRoutes'>,
  edit: string,
  faultOf: (image: string) => Promise<string | undefined>,
): Promise<Finding> {
  const fault = image === null ? undefined : await faultOf(image);
  if (fault !== undefined)
    return { check, state: 'warning', detail: `${name} has no image here: ${fault}`, fix: `firecrew image build ${image} --help` };
  const format = modelRoutes[name]?.format;
  if (modelRoute !== null && format !== modelRoute.format) {
    const found = format === undefined ? 'the settings name none' : `that of the settings speaks ${format}`;
    return { check, state: 'warning', detail: `${name} needs a model route in the format ${modelRoute.format}, and ${found}`, fix: edit };
  }
  return { check, state: 'ok', detail: `${name} has what it needs`, fix: null };
}
