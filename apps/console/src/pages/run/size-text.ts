const UNITS = ["B", "KB", "MB", "GB"] as const;
const STEP = 1024;

/** Returns a number of bytes as "1.5 MB", or undefined if it is unknown. */
export function sizeText(bytes: number | undefined): string | undefined {
  if (bytes === undefined) return undefined;
  const index = bytes < STEP ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / Math.log2(STEP)));
  const size = bytes / STEP ** index;
  return `${index === 0 || size >= 10 ? Math.round(size) : size.toFixed(1)} ${UNITS[index]}`;
}
