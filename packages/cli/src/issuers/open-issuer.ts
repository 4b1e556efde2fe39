import type { Issuer, SeatKey } from '@firecrew/seat-keys';
import type { Connection } from '../commands/context.ts';
import { isAccepted } from '../seats/choose-seat.ts';
import type { SeatDesk } from '../seats/seat-desk.ts';
import { ServerIssuer } from '../seats/server-issuer.ts';
import type { Settings } from '../settings/settings.ts';
import { HttpIssuer } from './http-issuer.ts';
import { readIssuerFile } from './issuer-file.ts';
import { readSecret } from './read-secret.ts';
import { StaticIssuer } from './static-issuer.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The issuer of a home's seat keys: the server itself, or that of the setting `seatIssuer`. Throws `issuer_invalid` and `issuer_secret_unreadable`. */
export async function openIssuer(
  { seatIssuer }: Settings,
  { desk, connection, env }: { readonly desk: SeatDesk; readonly connection: Connection; readonly env: Environment },
): Promise<Issuer> {
  if (seatIssuer == null) return new ServerIssuer(desk.client);
  const file = await readIssuerFile(seatIssuer);
  if (file.kind === 'static') {
    const keys = new Map<string, { readonly key: SeatKey; readonly keyId: string }>();
    for (const [role, { keyId, from }] of Object.entries(file.keys)) keys.set(role, { key: await readSecret(from, env), keyId });
    return new StaticIssuer({ name: file.name, keys, isAccepted: async (key) => await isAccepted(connection.as(key.reveal())) });
  }
  const credential = await readSecret(file.credential.from, env);
  return new HttpIssuer({ file, credential: credential.reveal(), workspace: desk.self.workspace });
}
