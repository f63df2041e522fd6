export function prisma(
  appDir: string,
  args: string[],
  environment?: Record<string, string>,
  stdio?: "pipe" | "inherit",
): { status: number; output: string };
