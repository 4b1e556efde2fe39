import { isLoopback } from '@firecrew/protocol';
import { Agent } from 'undici';

const direct = new Agent();

/** Options of a request to the server: one on this host is reached directly, whatever proxy an environment names, since that would read the token. */
export const requestOptions = (url: URL): { readonly dispatcher?: Agent } => (isLoopback(url) ? { dispatcher: direct } : {});
