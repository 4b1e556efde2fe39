import type { Amount, ModelFeature, RouteRefusal, TokenUsage } from '@firecrew/model-route';

/** How a call that was forwarded ended. */
export type CallEnd = 'answered' | 'guest_gone' | 'upstream_gone' | 'upstream_timeout' | 'lease_lost' | 'route_closed' | 'body_too_large';

/**
 * One line of the audit of a model route. `open` is written before anything is forwarded; exactly one `end` of the same `call` follows it. A
 * request that is refused earlier has one `refused` line. No text of the guest enters a line but a model's name of plain characters.
 */
export interface ModelCallLine {
  readonly event: 'open' | 'refused' | 'end';
  /** Number of the request, from 1, unique within one route. */
  readonly call: number;
  readonly reason: RouteRefusal | 'listed' | CallEnd;
  /** Absent where the head was refused. */
  readonly path?: string;
  readonly model?: string;
  /** Features that the body asked for and policy does not allow. */
  readonly features?: readonly (ModelFeature | 'unknown')[];
  /** Status of the upstream (`end`) or of the refusal. */
  readonly status?: number;
  /** What the upstream said the call cost; null where it did not say so. */
  readonly usage?: TokenUsage | null;
  /** What the budget was charged with. */
  readonly charged?: Amount;
  /** The upstream refused the credential of the host (401, 403). */
  readonly isCredentialRefused?: boolean;
  /** How often the credential was taken out of the answer. */
  readonly leaks?: number;
  readonly durationMs?: number;
}
