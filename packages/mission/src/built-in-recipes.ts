import { parseRecipe, type Recipe } from './parse-recipe.ts';
import change from './recipes/change.json' with { type: 'json' };
import changeThenVerify from './recipes/change-then-verify.json' with { type: 'json' };
import investigate from './recipes/investigate.json' with { type: 'json' };
import measuredChange from './recipes/measured-change.json' with { type: 'json' };
import planThenChange from './recipes/plan-then-change.json' with { type: 'json' };
import scanThenFix from './recipes/scan-then-fix.json' with { type: 'json' };
import testFirst from './recipes/test-first.json' with { type: 'json' };

/** The recipes of this build, one data file each in `recipes/`. */
export const BUILT_IN_RECIPES: readonly Recipe[] = [
  change,
  investigate,
  planThenChange,
  testFirst,
  changeThenVerify,
  measuredChange,
  scanThenFix,
].map((document) => {
  const parsed = parseRecipe(document);
  if (parsed.verdict === 'valid') return parsed.recipe;
  throw new TypeError(`a recipe of this build is not one: ${parsed.message}`);
});
