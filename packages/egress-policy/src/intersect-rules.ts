import { type AllowRule, formatAllowRule, type TunnelProtocol } from './allow-entry.ts';

/** Whether `name` is `domain` or a true subdomain of it. */
export function isUnder(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`);
}

/** `name` itself, then each domain above it, nearest first. */
export function nameAndParents(name: string): string[] {
  const names = [name];
  for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) names.push(name.slice(dot + 1));
  return names;
}

/** Rules by their host, so that a match costs one look-up per label and no rule text is ever a key of a plain object. */
export type RuleIndex = ReadonlyMap<string, readonly AllowRule[]>;

export function indexRules(rules: readonly AllowRule[]): RuleIndex {
  const index = new Map<string, AllowRule[]>();
  for (const rule of rules) {
    const same = index.get(rule.host);
    if (same === undefined) index.set(rule.host, [rule]);
    else same.push(rule);
  }
  return index;
}

/** Rules that cover the name itself, nearest first. */
export function rulesCovering(index: RuleIndex, name: string): AllowRule[] {
  return nameAndParents(name).flatMap((parent) => (index.get(parent) ?? []).filter((rule) => parent === name || rule.subdomains));
}

// A `tcp` rule lets any bytes through, TLS too, so what both allow is `tls` unless both say `tcp`.
function narrower(a: TunnelProtocol, b: TunnelProtocol): TunnelProtocol {
  return a === 'tcp' && b === 'tcp' ? 'tcp' : 'tls';
}

function intersectPair(a: AllowRule, b: AllowRule): AllowRule | undefined {
  if (a.port !== b.port) return undefined;
  const protocol = narrower(a.protocol, b.protocol);
  if (isUnder(a.host, b.host) && b.subdomains) return { ...a, protocol };
  if (isUnder(b.host, a.host) && (a.subdomains || a.host === b.host)) return { ...b, protocol };
  return undefined;
}

/** The rules that allow exactly what both lists allow: a name, a port and a kind of bytes pass when each list has a rule for them. */
export function intersectRules(wanted: readonly AllowRule[], ceiling: readonly AllowRule[]): readonly AllowRule[] {
  const index = indexRules(ceiling);
  const result = new Map<string, AllowRule>();
  for (const rule of wanted) {
    const partners = rule.subdomains ? ceiling : rulesCovering(index, rule.host);
    for (const partner of partners) {
      const both = intersectPair(rule, partner);
      if (both !== undefined) result.set(formatAllowRule(both), both);
    }
  }
  return [...result.values()];
}
