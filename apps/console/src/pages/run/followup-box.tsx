import { useId, useState, type FormEvent, type KeyboardEvent, type ReactNode } from "react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Paperclip, SendHorizontal, X } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { errorOf } from "../../api/problem.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { visibleText } from "../../ui/safe-text.tsx";
import { useToasts } from "../../ui/toasts.tsx";

type NewFollowup = components["schemas"]["NewFollowup"];
type Outcome = keyof typeof OUTCOMES;
type Uploaded = { readonly attachment_id: string; readonly name: string };

/** Where follow-ups go: a run, or the newest run of a conversation. */
export type FollowupTarget = { readonly runId: string } | { readonly conversationId: string };

const FILES_MAX = 25;
const OUTCOMES = {
  live_session: "Delivered to the agent.",
  queued_prompt: "The agent receives it when it starts.",
  handoff_execution: "The run continues with it.",
  queue_pending: "Queued; the agent receives it after its current work.",
} as const;

/** Sends a follow-up with files. Ctrl-Enter sends, too. */
export function FollowupBox({ target }: { target: FollowupTarget }): ReactNode {
  const [message, setMessage] = useState("");
  const [files, setFiles] = useState<readonly Uploaded[]>([]);
  const mayManage = useMay("run.manage");
  const toasts = useToasts();
  const queries = useQueryClient();
  const fileInput = useId();
  const body: NewFollowup = {
    message,
    ...(files.length > 0 ? { attachments: files.map(({ attachment_id }) => ({ attachment_id })) } : {}),
  };
  const header = useIdempotencyKey(body);
  const upload = useMutation({
    mutationFn: (chosen: readonly File[]) => uploadFiles(target, chosen),
    onSuccess: (uploaded) => setFiles((all) => [...all, ...uploaded]),
    onError: (error: unknown) => toasts.failure(error),
  });
  const send = useMutation({
    mutationFn: () => sendFollowup(target, body, header),
    onSuccess: ({ outcome, run_id: runId }) => {
      setMessage("");
      setFiles([]);
      toasts.success(OUTCOMES[outcome]);
      void queries.invalidateQueries({ queryKey: ["run", runId] });
      void queries.invalidateQueries({ queryKey: ["conversation"] });
    },
    onError: (error: unknown) => toasts.failure(error),
  });
  const isReady = mayManage && (message.trim() !== "" || files.length > 0) && !send.isPending && !upload.isPending;
  const submit = (event: FormEvent | KeyboardEvent): void => {
    event.preventDefault();
    if (isReady) send.mutate();
  };
  return (
    <form className="followup" onSubmit={submit}>
      <textarea
        className="textarea"
        aria-label="Follow-up"
        placeholder={mayManage ? "Send a follow-up to the agent…" : "Your role may not send follow-ups."}
        value={message}
        disabled={!mayManage}
        onChange={(event) => setMessage(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event)}
      />
      <div className="followup-actions">
        <label className="button" htmlFor={fileInput} aria-disabled={!mayManage}>
          <Paperclip size={14} aria-hidden />
          {upload.isPending ? "Uploading…" : "Attach"}
          <input
            id={fileInput}
            className="visually-hidden"
            type="file"
            multiple
            aria-label="Attach files"
            disabled={!mayManage || upload.isPending || files.length >= FILES_MAX}
            onChange={(event) => {
              const chosen = [...(event.target.files ?? [])].slice(0, FILES_MAX - files.length);
              event.target.value = "";
              if (chosen.length > 0) upload.mutate(chosen);
            }}
          />
        </label>
        <Button look="primary" type="submit" disabled={!isReady}>
          <SendHorizontal size={14} aria-hidden />
          Send
        </Button>
      </div>
      {files.length > 0 && (
        <ul className="followup-files" aria-label="Attached files">
          {files.map(({ attachment_id: id, name }) => (
            <li key={id} className="badge plain">
              {visibleText(name)}
              <Button
                look="quiet"
                isIcon
                isSmall
                aria-label={`Remove ${visibleText(name)}`}
                onClick={() => setFiles(files.filter((file) => file.attachment_id !== id))}
              >
                <X size={12} aria-hidden />
              </Button>
            </li>
          ))}
        </ul>
      )}
    </form>
  );
}

async function sendFollowup(
  target: FollowupTarget,
  body: NewFollowup,
  header: { "Idempotency-Key": string },
): Promise<{ outcome: Outcome; run_id: string }> {
  if ("conversationId" in target)
    return dataOf(
      api.POST("/api/v1/agent/conversations/{conversationId}/followups", { params: { path: target, header }, body }),
    );
  const { outcome } = await dataOf(
    api.POST("/api/v1/agent/runs/{runId}/followups", { params: { path: target, header }, body }),
  );
  return { outcome, run_id: target.runId };
}

/** Uploads files to the addresses that the platform prepares for them. Returns their ids. */
async function uploadFiles(target: FollowupTarget, chosen: readonly File[]): Promise<Uploaded[]> {
  const body = {
    files: chosen.map(({ name, type }) => ({ filename: name, mime_type: type || "application/octet-stream" })),
  };
  const { attachments } =
    "conversationId" in target
      ? await dataOf(
          api.POST("/api/v1/agent/conversations/{conversationId}/attachments/prepare", {
            params: { path: target },
            body,
          }),
        )
      : await dataOf(api.POST("/api/v1/agent/runs/{runId}/attachments/prepare", { params: { path: target }, body }));
  return Promise.all(
    attachments.map(async ({ attachment_id, upload_target: { url, method, headers } }, index) => {
      const file = chosen[index]!;
      const response = await fetch(url, { method, headers, body: file });
      if (!response.ok) throw await errorOf(`${method} ${new URL(url).pathname}`, response);
      return { attachment_id, name: file.name };
    }),
  );
}
