'use client';

import { useOpener } from '@/state/opener';
import { pieces } from './markers';

/** Plain text in which each marker opens what it stands for. */
export function MarkedText({ text }: { text: string }) {
  const opener = useOpener();
  return pieces(text).map((piece, place) =>
    piece.segment ? (
      <button
        key={place}
        type="button"
        onClick={() => opener.segment(piece.segment!)}
        className="rounded bg-accent-wash px-1 text-start text-accent hover:underline"
      >
        {piece.text} →{piece.level}
      </button>
    ) : (
      <span key={place}>{piece.text}</span>
    ),
  );
}
