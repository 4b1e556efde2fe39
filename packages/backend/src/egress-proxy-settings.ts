import { CHAIN_MODES, EgressConfigError, loadChain, NO_PROXY_MAX } from '@firecrew/egress-policy';
import * as z from 'zod';
import { credentialPlaceSchema } from './model-route-settings.ts';

/** The operator's own proxy, through which tunnels of guests, model calls and git of the server leave. Unknown keys are refused. */
export const egressProxySettingsSchema = z
  .strictObject({
    url: z.string().min(1).max(300).describe('`http://HOST:PORT`, without a credential.'),
    credential: credentialPlaceSchema
      .nullable()
      .default(null)
      .describe('File, or variable of the service, that holds `user:password`; null for a proxy that asks for none.'),
    noProxy: z
      .array(z.string().min(1).max(300))
      .max(NO_PROXY_MAX)
      .default([])
      .describe('Hosts that are dialled directly; a leading dot covers the domain and its subdomains.'),
    mode: z
      .enum(CHAIN_MODES)
      .default('address')
      .describe('`address` sends the address that was judged; `name-only` sends the name, and no address can be judged.'),
    serverLink: z
      .boolean()
      .default(false)
      .describe('Whether a node reaches its server through it, too: the link, data of attempts, and images.'),
  })
  .superRefine((settings, context) => {
    try {
      loadChain(settings);
    } catch (error) {
      if (!(error instanceof EgressConfigError)) throw error;
      for (const { message } of error.problems) context.addIssue({ code: 'custom', message });
    }
  });
export type EgressProxySettings = z.infer<typeof egressProxySettingsSchema>;
