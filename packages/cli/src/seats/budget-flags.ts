/** Flags of `seat link` that bound what a seat may use, with what each is for a person. */
export const BUDGET_FLAGS = {
  turnTokens: ['--turn-tokens <n>', 'most tokens of a model route that one attempt is given'],
  dayTokens: ['--day-tokens <n>', 'tokens of all its turns on one day (UTC)'],
  totalTokens: ['--total-tokens <n>', 'tokens of all its turns ever'],
  turnMoney: ['--turn-money <x>', "most money that one attempt is given, in the unit of the nodes' price tables"],
  dayMoney: ['--day-money <x>', 'money of all its turns on one day (UTC)'],
  totalMoney: ['--total-money <x>', 'money of all its turns ever'],
} as const;
