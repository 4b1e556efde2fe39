const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Shortest credential: a shorter text would be found where it is not. */
export const CREDENTIAL_MIN_CHARACTERS = 8;
export const CREDENTIAL_MAX_CHARACTERS = 8_192;

/** True for what can be a credential: printable ASCII without spaces, of 8 to 8,192 characters. */
export function isCredential(text: string): boolean {
  return text.length >= CREDENTIAL_MIN_CHARACTERS && text.length <= CREDENTIAL_MAX_CHARACTERS && /^[!-~]+$/.test(text);
}

/**
 * The spellings in which a credential is searched for: as it is, as base64 (both alphabets, at each place it can have in a longer text), as hex
 * of both cases, percent-encoded (what must be, and all of it, both cases), with the escapes of JSON.
 */
export function credentialForms(credential: string): string[] {
  const bytes = [...new TextEncoder().encode(credential)];
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, '0'));
  const standard = [0, 1, 2].map((shift) => base64Inside(bytes, shift));
  const forms = [
    credential,
    ...standard,
    ...standard.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
    hex.join(''),
    hex.join('').toUpperCase(),
    hex.map((pair) => `%${pair}`).join(''),
    hex.map((pair) => `%${pair.toUpperCase()}`).join(''),
    percentEncoded(credential),
    percentEncoded(credential).replaceAll(/%[0-9A-F]{2}/g, (text) => text.toLowerCase()),
    hex.map((pair) => `\\u00${pair}`).join(''),
    hex.map((pair) => `\\u00${pair.toUpperCase()}`).join(''),
    JSON.stringify(credential).slice(1, -1),
    credential.replaceAll('/', '\\/'),
  ];
  return [...new Set(forms)];
}

/** The characters of base64 that depend on these bytes alone when `shift` bytes stand before them. */
function base64Inside(bytes: readonly number[], shift: number): string {
  const padded = [...Array.from({ length: shift }, () => 0), ...bytes];
  let text = '';
  for (let index = 0; index < padded.length; index += 3) {
    const [first = 0, second = 0, third = 0] = padded.slice(index, index + 3);
    const word = (first << 16) | (second << 8) | third;
    text += [18, 12, 6, 0].map((by) => BASE64[(word >> by) & 63] ?? '').join('');
  }
  const start = Math.ceil((shift * 8) / 6);
  const end = Math.floor((padded.length * 8) / 6);
  return text.slice(start, end);
}

function percentEncoded(text: string): string {
  return [...text]
    .map((letter) => (/[A-Za-z0-9._~-]/.test(letter) ? letter : `%${letter.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`))
    .join('');
}
