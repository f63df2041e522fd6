import type { Command } from "../command.ts";
import { accessCommands } from "./access.ts";
import { agentCommands } from "./agent.ts";
import { automationCommands } from "./automation.ts";
import { backupCommands } from "./backup.ts";
import { benchmarkCommands } from "./benchmark.ts";
import { benchmarkLaunchCommands } from "./benchmark-launch.ts";
import { budgetCommands } from "./budget.ts";
import { catalogCommands } from "./catalog.ts";
import { codeHostCommands } from "./code-host.ts";
import { completionCommand } from "./completion.ts";
import { costCommands } from "./costs.ts";
import { doctorCommand } from "./doctor.ts";
import { environmentCommands } from "./environment.ts";
import { eventCommands } from "./event.ts";
import { factoryCommands } from "./factory.ts";
import { invitationCommands } from "./invitation.ts";
import { localRunCommand } from "./local-run.ts";
import { metricsCommands } from "./metrics.ts";
import { modelPriceCommands } from "./model-price.ts";
import { priceCommands } from "./price.ts";
import { pullRequestCommands } from "./pull-request.ts";
import { queueCommands } from "./queue.ts";
import { runCommands } from "./run.ts";
import { scheduleCommands } from "./schedule.ts";
import { scorerCommands } from "./scorer.ts";
import { taskCommands } from "./task.ts";
import { webhookCommands } from "./webhook.ts";
import { workerCommands } from "./worker.ts";

/** Every command. */
export const COMMANDS: Command[] = [
  ...accessCommands,
  ...agentCommands,
  ...automationCommands,
  ...backupCommands,
  ...benchmarkCommands,
  ...benchmarkLaunchCommands,
  ...budgetCommands,
  ...catalogCommands,
  ...codeHostCommands,
  completionCommand,
  ...costCommands,
  doctorCommand,
  ...environmentCommands,
  ...eventCommands,
  ...factoryCommands,
  ...invitationCommands,
  localRunCommand,
  ...metricsCommands,
  ...modelPriceCommands,
  ...priceCommands,
  ...pullRequestCommands,
  ...queueCommands,
  ...runCommands,
  ...scheduleCommands,
  ...scorerCommands,
  ...taskCommands,
  ...webhookCommands,
  ...workerCommands,
];
