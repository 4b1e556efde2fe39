/** The parts of a phase that have a reach of their own: the set-up before the agent, and the agent with its check. */
export const POLICY_PARTS = ['setup', 'run'] as const;
export type PolicyPart = (typeof POLICY_PARTS)[number];

/** How far a mission may reach beyond what the policy itself names, from closed to open. */
export const POLICY_PRESETS = ['locked', 'named', 'install', 'open'] as const;
export type PolicyPreset = (typeof POLICY_PRESETS)[number];

/** `nothing`: the part reaches nothing. `named`: what the policy names for that part. `anything`: what the mission asks for. */
export type PresetReach = 'nothing' | 'named' | 'anything';

/** The bound that a preset sets for each part, before the ceiling, which no preset widens. */
export const PRESET_REACH: Readonly<Record<PolicyPreset, Readonly<Record<PolicyPart, PresetReach>>>> = {
  locked: { setup: 'nothing', run: 'nothing' },
  named: { setup: 'named', run: 'named' },
  install: { setup: 'anything', run: 'named' },
  open: { setup: 'anything', run: 'anything' },
};
