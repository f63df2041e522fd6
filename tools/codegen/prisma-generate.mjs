// Runs `prisma generate` for one app: node tools/codegen/prisma-generate.mjs apps/factories
import { prisma } from "../database/prisma.mjs";

const { status, output } = prisma(process.argv[2], ["generate", "--config", "prisma.config.ts"]);
if (status !== 0) process.stderr.write(output);
process.exit(status);
