import type { StoreError } from '@firecrew/seat-keys';

/** The service that entries of ours are filed under. */
export const SERVICE = 'firecrew-seat-key';

/** What looking an entry up gave. */
export type Lookup =
  | { readonly status: 'found'; readonly text: string }
  | { readonly status: 'absent' }
  | { readonly status: 'failed'; readonly error: StoreError };

/** What a change gave. */
export type Change = { readonly status: 'done' } | { readonly status: 'failed'; readonly error: StoreError };

/** The keychain of an operating system behind its own tool. Entries are ASCII without quotes and blanks. */
export interface KeychainTool {
  /** Longest entry that the tool takes on its standard input, in bytes. */
  readonly maxBytes: number;
  lookup(account: string): Promise<Lookup>;
  /** Replaces what is there. */
  store(account: string, text: string): Promise<Change>;
  /** Removing what is not there is done. */
  remove(account: string): Promise<Change>;
}

/** The failure of a helper by its exit code and by words of its errors, of which none is kept. */
export function faultOf(code: number, stderr: string): StoreError {
  const words = stderr.toLowerCase();
  const has = (...texts: readonly string[]): boolean => texts.some((text) => words.includes(text));
  if (has('interaction is not allowed', 'locked', 'dismissed', 'cancel')) return { fault: 'locked', exitCode: code };
  if (has('denied', 'not permitted', 'authorization')) return { fault: 'denied', exitCode: code };
  if (has('d-bus', 'dbus', 'org.freedesktop.secrets', 'autolaunch', 'could not connect'))
    return { fault: 'service_missing', exitCode: code };
  return { fault: 'helper_failed', exitCode: code };
}
