const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36, gray: 90 } as const;

export type Paint = Record<keyof typeof CODES, (text: string) => string>;

/** Functions that colour text, or leave it as it is where the output is not a colour terminal (or NO_COLOR is set). */
export function paint(isColour: boolean): Paint {
  const entries = Object.entries(CODES).map(([name, code]) => [
    name,
    (text: string) => (isColour ? `\u001b[${code}m${text}\u001b[0m` : text),
  ]);
  return Object.fromEntries(entries) as Paint;
}
