/** Tokens of one call, apart from one another: `input` is what was neither read from a cache nor written to one. */
export interface TokenUsage {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
}

export const NO_USAGE: TokenUsage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };

/** All tokens together. */
export function totalTokens({ input, cacheRead, cacheWrite, output }: TokenUsage): number {
  return input + cacheRead + cacheWrite + output;
}

/** Both together. */
export function addUsage(left: TokenUsage, right: TokenUsage): TokenUsage {
  return {
    input: left.input + right.input,
    cacheRead: left.cacheRead + right.cacheRead,
    cacheWrite: left.cacheWrite + right.cacheWrite,
    output: left.output + right.output,
  };
}
