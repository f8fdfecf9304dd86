/** Replaces `rehype-raw`: HTML in Markdown is not parsed but shown as written, such as `List<String>`; line breaks are kept. */
import { visit } from 'unist-util-visit';

interface Node {
  type: string;
  value?: string;
  children?: Node[];
}

const LINE_BREAK = /^<br\s*\/?>$/i;
const element = (tagName: string, children: Node[]) => ({ type: 'element', tagName, properties: {}, children });

export default function noHtml() {
  return (tree: Node) => {
    visit(tree as never, 'raw', ({ value = '' }: Node, place: number | undefined, parent: Node | undefined) => {
      if (!parent?.children || place === undefined) return;
      const text = { type: 'text', value };
      const shown = parent.type === 'root' ? element('p', [text]) : text;
      parent.children[place] = LINE_BREAK.test(value) ? element('br', []) : shown;
    });
  };
}
