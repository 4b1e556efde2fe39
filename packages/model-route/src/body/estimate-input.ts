/** Tokens that a provider adds to what a request says: its own words around tools and messages. */
export const INPUT_OVERHEAD_TOKENS = 512;
/** Bytes of text that are taken for one token; of English it is about 4, of code about 3. */
export const TEXT_BYTES_PER_TOKEN = 2;
/** Characters of base64 that are taken for one token: an image of 1 MB costs about 1,600, a document of that size up to 80,000. */
export const DATA_CHARACTERS_PER_TOKEN = 16;
/** Length from which a text that could be base64 is taken for data. */
const DATA_MIN_CHARACTERS = 4_096;

/** Tokens of a request, estimated from its bytes: more than most requests have, so that what is reserved for them is enough. */
export function estimateInput(body: unknown, bodyBytes: number): number {
  const data = dataCharacters(body);
  return Math.ceil((bodyBytes - data) / TEXT_BYTES_PER_TOKEN) + Math.ceil(data / DATA_CHARACTERS_PER_TOKEN) + INPUT_OVERHEAD_TOKENS;
}

function dataCharacters(value: unknown): number {
  if (typeof value === 'string') return isData(value) ? value.length : 0;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce((sum: number, item) => sum + dataCharacters(item), 0);
}

function isData(text: string): boolean {
  return text.length >= DATA_MIN_CHARACTERS && /^(?:data:[A-Za-z0-9.+/;=-]{1,200},)?[A-Za-z0-9+/]+={0,2}$/.test(text);
}
