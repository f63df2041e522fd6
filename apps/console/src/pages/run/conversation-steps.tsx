import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { Bot, CircleDot, UserRound } from "lucide-react";
import type { components } from "../../gen/api.ts";
import { Markdown } from "../../ui/markdown.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { artifactContentUrl } from "./artifact-href.ts";
import { textOf } from "./timeline.ts";
import { ToolCall } from "./tool-call.tsx";

type Step = components["schemas"]["ConversationStep"];
type Message = components["schemas"]["ConversationMessage"];
type Block = components["schemas"]["ContentBlock"];
type Result = Block & { readonly type: "action_result" };

/** The steps of a conversation in order. A child run is below the step that started it. */
export function ConversationSteps({ steps }: { steps: readonly Step[] }): ReactNode {
  return (
    <ol className="plain-list">
      {steps.map((step) => (
        <li key={step.id}>
          <StepMessages messages={step.messages} />
          {step.steps.map((child) => (
            <details key={child.id} className="child-conversation">
              <summary>
                Child run: <SafeText>{child.description ?? child.id}</SafeText>{" "}
                <span className="soft">
                  <SafeText>{child.summary ?? ""}</SafeText>
                </span>
              </summary>
              <Link to="/runs/$runId" params={{ runId: child.id }}>
                Open its run
              </Link>
              <StepMessages messages={child.messages} />
              <ConversationSteps steps={child.steps} />
            </details>
          ))}
        </li>
      ))}
    </ol>
  );
}

function StepMessages({ messages }: { messages: readonly Message[] }): ReactNode {
  const results = new Map<string, Result>();
  for (const { content } of messages)
    for (const block of content) if (block.type === "action_result") results.set(block.action_id, block);
  return messages.map((message, index) => {
    const blocks = message.content.filter(({ type }) => type !== "action_result");
    if (blocks.length === 0) return null;
    const Icon = message.role === "user" ? UserRound : message.role === "system" ? CircleDot : Bot;
    return (
      // messages of a step are only appended, so their position identifies them
      <article key={index} className={`step message ${message.role}`}>
        <Icon size={14} aria-hidden className="step-icon" />
        <div className="step-body">
          <span className="visually-hidden">{message.role}: </span>
          {blocks.map((block, position) => (
            <BlockView key={position} block={block} results={results} />
          ))}
        </div>
        <div className="step-side">{message.timestamp !== undefined && <Time at={message.timestamp} />}</div>
      </article>
    );
  });
}

type BlockProps = { readonly block: Block; readonly results: ReadonlyMap<string, Result> };

function BlockView({ block, results }: BlockProps): ReactNode {
  switch (block.type) {
    case "text":
      return <Markdown>{block.text}</Markdown>;
    case "action": {
      const result = results.get(block.id);
      return (
        <ToolCall
          call={{
            name: block.name,
            input: block.input,
            state: result?.state ?? "running",
            output: result?.output ?? {},
            progress: "",
            durationMs: undefined,
          }}
          screenshotUrl={artifactContentUrl}
        />
      );
    }
    case "event":
      return (
        <p className="soft small">
          {block.name.replaceAll("_", " ")}{" "}
          <SafeText>{textOf(block.data["text"]) || textOf(block.data["message"])}</SafeText>
        </p>
      );
    default:
      return null;
  }
}
