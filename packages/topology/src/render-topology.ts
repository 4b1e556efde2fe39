import type { EdgeTime } from './catalogue.ts';
import type { Topology } from './validate-topology.ts';

const TIME_LABEL: Readonly<Record<EdgeTime, string>> = { next_round: 'next round', at_end: 'at the end' };

/** The graph in the DOT language; an edge into the next round is dashed. */
export function renderDot(topology: Topology): string {
  const nodes = topology.nodes.map((node) => `  ${node.id} [label="${labelOf(node).replace(/["\\]/g, '\\$&')}"];`);
  const edges = topology.edges.map(({ from, to, when }) => {
    const style = when === 'next_round' ? ', style=dashed, constraint=false' : '';
    return `  ${from} -> ${to}${when === undefined ? '' : ` [label="${TIME_LABEL[when]}"${style}]`};`;
  });
  return `${['digraph topology {', '  rankdir=LR;', ...nodes, ...edges, '}'].join('\n')}\n`;
}

/** The graph as a Mermaid flowchart. Text is written as character entities, so no role can end a label or add markup. */
export function renderMermaid(topology: Topology): string {
  const nodes = topology.nodes.map((node) => `  ${node.id}["${entities(labelOf(node))}"]`);
  const edges = topology.edges.map(({ from, to, when }) => {
    if (when === undefined) return `  ${from} --> ${to}`;
    return when === 'next_round' ? `  ${from} -. ${TIME_LABEL[when]} .-> ${to}` : `  ${from} -- ${TIME_LABEL[when]} --> ${to}`;
  });
  return `${['flowchart LR', ...nodes, ...edges].join('\n')}\n`;
}

function labelOf(node: Topology['nodes'][number]): string {
  const turns = (node.turns ?? 1) === 1 ? '' : `, ${node.turns} turns`;
  return node.backend === undefined && turns === '' ? node.role : `${node.role} (${`${node.backend ?? ''}${turns}`.replace(/^, /, '')})`;
}

function entities(text: string): string {
  return text.replace(/[^\p{L}\p{N} ._()-]/gu, (character) => `#${character.codePointAt(0) ?? 63};`);
}
