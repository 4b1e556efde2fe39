import { CHAIN_FAULTS } from '@firecrew/egress-policy';

/** Every way in which the operator's own proxy opens no tunnel to what may be reached. */
export const CHAIN_REASONS = [
  'chain_unreachable',
  'chain_timeout',
  'chain_early_bytes',
  'chain_credential_unreadable',
  ...CHAIN_FAULTS,
] as const;
export type ChainReason = (typeof CHAIN_REASONS)[number];

const TEXT: Readonly<Record<ChainReason, string>> = {
  chain_unreachable: 'it cannot be found or dialled; check its URL and the network',
  chain_timeout: 'it opened no tunnel in time; check the network, and that it works',
  chain_early_bytes: 'it sent bytes before the tunnel began; check that it is an HTTP proxy',
  chain_credential_unreadable: 'its credential cannot be read; give this account a file with one line user:password',
  chain_auth_refused: 'it did not take the credential (407); correct it',
  chain_refused: 'it refuses the host (403 or another 4xx); whoever runs it can allow it',
  chain_upstream_failed: 'it could not reach the host (5xx)',
  chain_answer_invalid: 'its answer was none to a CONNECT; check that it is an HTTP proxy',
};

/** The operator's own proxy opened no tunnel; the message is for the operator, and holds no credential. */
export class ChainError extends Error {
  readonly reason: ChainReason;
  /** What happened and what to do, without the target. */
  readonly detail: string;

  constructor(reason: ChainReason, target: string) {
    super(`the egress proxy opens no tunnel to ${target}: ${TEXT[reason]} (${reason})`);
    this.detail = `${TEXT[reason]} (${reason})`;
    this.name = 'ChainError';
    this.reason = reason;
  }
}
