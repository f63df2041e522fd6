import type { worker } from "@millwright/contracts";
import { parseTraceparent, traced, type Span, type Tracer } from "@millwright/telemetry";

/** Runs an execution in a span of its trace, with the attributes of OpenTelemetry's conventions for agents. */
export function traceExecution<T>(
  assignment: worker.Assignment,
  tracer: Tracer | undefined,
  run: (span: Span) => Promise<T>,
): Promise<T> {
  const { executionId, attempt, runUid, conversationUid, executionSeq, harness, modelId, traceparent } = assignment;
  const fields = { runUid, executionId: String(executionId), attempt };
  const attributes = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.conversation.id": conversationUid,
    "gen_ai.request.model": modelId,
    "millwright.run.uid": runUid,
    "millwright.execution.id": fields.executionId,
    "millwright.execution.seq": executionSeq,
    "millwright.attempt": attempt,
    "millwright.harness": harness,
  };
  const parent = parseTraceparent(traceparent);
  return traced("invoke_agent", { tracer, kind: "consumer", parent, fields, attributes }, run);
}
