/** Replaces `style-to-object`, which reads the `style` attributes of HTML: this page shows none. */
export default function noStyle(): void {}
