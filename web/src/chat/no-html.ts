/** In place of `rehype-raw`: HTML in Markdown is left out, not parsed. */
import { visit } from 'unist-util-visit';

interface Node {
  type: string;
  children?: Node[];
}

export default function noHtml() {
  return (tree: Node) => {
    visit(tree as never, 'raw', (_node: Node, place: number | undefined, parent: Node | undefined) => {
      if (parent?.children && place !== undefined) parent.children.splice(place, 1);
      return place;
    });
  };
}
