/** The generation this build speaks on every wire; one number per connection, agreed in the first message. */
export const GENERATION = 1;

/** The oldest generation this build still accepts, by wire. */
export const MIN_GENERATION = { guestLink: 1, nodeLink: 1, httpApi: 1, turnFolder: 1 } as const;

/** A wire of Firecrew. */
export type Wire = keyof typeof MIN_GENERATION;

/** The verdict on a peer's generation. The generation to speak is the lower of the two. */
export type GenerationVerdict =
  | { readonly ok: true; readonly generation: number }
  | { readonly ok: false; readonly code: 'generation_too_old' | 'generation_too_new'; readonly message: string };

/** Decides which generation to speak with a peer that offers `offered` and accepts down to `peerMin`. */
export function negotiateGeneration(wire: Wire, offered: number, peerMin = offered): GenerationVerdict {
  if (offered < MIN_GENERATION[wire]) {
    return {
      ok: false,
      code: 'generation_too_old',
      message: `${wire}: the peer speaks generation ${offered}, this build needs ${MIN_GENERATION[wire]}`,
    };
  }
  if (peerMin > GENERATION) {
    return {
      ok: false,
      code: 'generation_too_new',
      message: `${wire}: the peer needs generation ${peerMin}, this build speaks ${GENERATION}`,
    };
  }
  return { ok: true, generation: Math.min(offered, GENERATION) };
}
