/** Replaces `tailwind-merge`: class names are only joined, since none of ours contradicts one of the library's. */
export const twMerge = (...given: (string | false | null | undefined)[]): string => given.filter(Boolean).join(' ');
