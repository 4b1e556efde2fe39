import { CodedError } from '@firecrew/base';
import { type ByteText, readableText } from './tar-entry.ts';

/** The archive breaks its own format. */
export function malformedArchive(what: string): CodedError {
  return new CodedError('layer_malformed', `the archive is not well-formed: ${what}`, {
    action: 'Make or fetch it again; its bytes are not a plain tar archive.',
  });
}

/** The archive ends early. */
export function cutArchive(): CodedError {
  return new CodedError('layer_cut', 'the archive ends before its end mark', { action: 'Fetch or make it again: it is not whole.' });
}

/** The archive is well-formed and holds something that no image may. */
export function refusedEntry(what: string, path: ByteText): CodedError {
  const shown = readableText(path);
  return new CodedError('entry_refused', `the archive holds ${what}: ${shown}`, { id: shown, action: 'Make the image without it.' });
}

/** A bound of untrusted images was passed. */
export function imageTooLarge(what: string): CodedError {
  return new CodedError('image_too_large', what, {
    action: 'Make a smaller image; what a task alone needs can be installed by its set-up.',
  });
}
