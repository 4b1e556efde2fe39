import { CodedError } from '@firecrew/base';
import { type AllowEntry, formatAllowRule, intersectRules, POLICY_PARTS, type PolicyPart, parseAllowEntry } from '@firecrew/egress-policy';
import { type Document, parseDocument } from 'yaml';
import { parsePolicyText } from './parse-policy.ts';

/** What a mission was refused by name, as an entry that would allow it. */
export interface LearnedEntry {
  readonly part: PolicyPart;
  readonly entry: string;
}

/** A named rule that the learned policy has, or has more of. */
export interface LearnedRule {
  readonly name: string;
  readonly part: PolicyPart;
  readonly entries: readonly string[];
}

/** A policy to review. Nothing is changed but by whoever puts it into the place of the one before. */
export interface LearnedPolicy {
  /** The text of the file before; that of an empty policy where there was none. */
  readonly before: string;
  readonly text: string;
  readonly rules: readonly LearnedRule[];
}

/** What a server without a file has least of. */
const EMPTY = 'version: 1\npreset: named\n';
const RULE_NAME = /^[a-z][a-z0-9-]{0,39}$/;

/**
 * Adds to a policy the least that allows `entries`: a named rule for each part, which missions have to ask for, and in a ceiling of the file
 * what that does not cover. Comments and order of the text stay.
 * Throws `policy_invalid`, `policy_locked` where the preset lets nothing through, and `policy_rule_taken`.
 */
export function learnPolicy(
  text: string | undefined,
  file: string,
  wanted: { readonly rule: string; readonly entries: readonly LearnedEntry[] },
): LearnedPolicy {
  const before = text ?? EMPTY;
  const policy = parsePolicyText(before, file);
  if (policy.preset === 'locked')
    throw new CodedError('policy_locked', `the preset of ${file} lets nothing through, whatever a rule names`, {
      id: file,
      action: 'Choose the preset `named` first, if missions are to reach anything.',
    });
  if (!RULE_NAME.test(wanted.rule)) throw taken(wanted.rule, 'is no name of a rule (small letters, digits and "-")');
  const document = parseDocument(before, { version: '1.2' });
  const rules = POLICY_PARTS.flatMap((part): LearnedRule[] => {
    const entries = entriesOf(wanted.entries, part);
    if (entries.length === 0) return [];
    const name = part === 'run' ? wanted.rule : `${wanted.rule}-${part}`;
    const known = Object.hasOwn(policy.rules ?? {}, name) ? policy.rules?.[name] : undefined;
    if (known !== undefined && (known.parts?.length !== 1 || known.parts[0] !== part))
      throw taken(name, `is a rule of ${file} already, and not for ${part} alone`);
    const isThere = (entry: string): boolean => covers(known?.allow ?? [], entry);
    const fresh = entries.filter((entry) => !isThere(entry));
    if (known === undefined) document.setIn(['rules', name], document.createNode({ parts: [part], allow: fresh }));
    else append(document, ['rules', name, 'allow'], fresh);
    const ceiling = policy.ceiling?.[part];
    if (ceiling !== undefined)
      append(
        document,
        ['ceiling', part],
        entries.filter((entry) => !covers(ceiling, entry)),
      );
    return [{ name, part, entries }];
  });
  const learned = rules.length === 0 ? before : document.toString({ lineWidth: 0, flowCollectionPadding: /[[{] /.test(before) });
  parsePolicyText(learned, file);
  return { before, text: learned, rules };
}

function entriesOf(entries: readonly LearnedEntry[], part: PolicyPart): string[] {
  return [...new Set(entries.filter((one) => one.part === part).map(({ entry }) => entry))].sort();
}

/** Whether a list lets through all that an entry does. Words that stand for other lists cover nothing here: they may change. */
function covers(list: readonly AllowEntry[], entry: string): boolean {
  const wanted = parseAllowEntry(entry);
  if (!wanted.ok) throw new CodedError('allow_list_invalid', wanted.problem.message, { id: entry });
  const rules = list.flatMap((one) => {
    const parsed = parseAllowEntry(one);
    return parsed.ok ? [parsed.rule] : [];
  });
  return intersectRules([wanted.rule], rules).some((rule) => formatAllowRule(rule) === formatAllowRule(wanted.rule));
}

function append(document: Document, path: readonly string[], entries: readonly string[]): void {
  for (const entry of entries) document.addIn(path, entry);
}

function taken(name: string, why: string): CodedError {
  return new CodedError('policy_rule_taken', `${name} ${why}`, { id: name, action: 'Name another rule with --rule.' });
}
