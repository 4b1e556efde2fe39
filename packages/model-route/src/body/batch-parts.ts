import { featuresOf, type KnownFormat, PATH_FEATURES } from '../formats.ts';
import type { Findings, JsonObject } from './findings.ts';

/** The requests of a batch; null where they lie in a file of the provider's, which nobody here has read. */
export type BatchParts = readonly JsonObject[] | null;

/**
 * A batch that lies in a file may ask for whatever its format has: each feature is found in it, so that it passes only where policy names
 * them all.
 */
export function addUnread(format: KnownFormat, at: string, findings: Findings): null {
  const ofPaths: readonly string[] = PATH_FEATURES;
  for (const feature of featuresOf(format)) if (!ofPaths.includes(feature)) findings.add(feature, at);
  return null;
}
