import type { Topology } from './validate-topology.ts';

/** The graph in the DOT language. */
export function renderDot(topology: Topology): string {
  const nodes = topology.nodes.map((node) => `  ${node.id} [label="${labelOf(node).replace(/["\\]/g, '\\$&')}"];`);
  const edges = topology.edges.map((edge) => `  ${edge.from} -> ${edge.to};`);
  return `${['digraph topology {', '  rankdir=LR;', ...nodes, ...edges, '}'].join('\n')}\n`;
}

/** The graph as a Mermaid flowchart. Text is written as character entities, so no role can end a label or add markup. */
export function renderMermaid(topology: Topology): string {
  const nodes = topology.nodes.map((node) => `  ${node.id}["${entities(labelOf(node))}"]`);
  const edges = topology.edges.map((edge) => `  ${edge.from} --> ${edge.to}`);
  return `${['flowchart LR', ...nodes, ...edges].join('\n')}\n`;
}

function labelOf(node: Topology['nodes'][number]): string {
  return node.backend === undefined ? node.role : `${node.role} (${node.backend})`;
}

function entities(text: string): string {
  return text.replace(/[^\p{L}\p{N} ._()-]/gu, (character) => `#${character.codePointAt(0) ?? 63};`);
}
