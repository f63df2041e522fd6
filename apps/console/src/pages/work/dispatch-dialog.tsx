import { useState, type ReactNode } from "react";
import { useNavigate } from "@tanstack/react-router";
import { useMutation } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { ForemanNotice, useForemanMissing } from "../../app/foreman-notice.tsx";
import { MissingModelNotice } from "../../app/model-notice.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { TextField } from "../../ui/text-field.tsx";

type Factory = components["schemas"]["Factory"];

/** A script that succeeds in every factory, with or without repositories. */
const EXAMPLE_SCRIPT = `\`\`\`scripted
- say: I will add the file.
- write: {path: hello.txt, content: "hi"}
- shell: cat hello.txt
\`\`\`
`;

/** Sends a prompt to a factory's foreman and opens its run. */
export function DispatchDialog({ factory, onClose }: { factory: Factory; onClose: () => void }): ReactNode {
  const navigate = useNavigate();
  const isForemanMissing = useForemanMissing(factory.uid);
  const [prompt, setPrompt] = useState("");
  const [title, setTitle] = useState("");
  const [ticket, setTicket] = useState("");
  const body = {
    prompt,
    title: title.trim() || undefined,
    ticket_ref: ticket.trim() || undefined,
  };
  const header = useIdempotencyKey(body);
  const dispatch = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/factory/{uid}/runs", {
          params: { path: { uid: factory.uid }, header },
          body,
        }),
      ),
    onSuccess: ({ run_id: runId }) => void navigate({ to: "/runs/$runId", params: { runId } }),
  });
  return (
    <FormDialog
      title={`Dispatch work to ${factory.name}`}
      action="Dispatch"
      isPending={dispatch.isPending}
      isInvalid={prompt.trim() === "" || isForemanMissing}
      error={dispatch.error}
      onSubmit={() => dispatch.mutate()}
      onClose={onClose}
    >
      <ForemanNotice factory={factory} />
      <MissingModelNotice>
        <div>
          <Button
            isSmall
            onClick={() => setPrompt([prompt.trim(), EXAMPLE_SCRIPT].filter((part) => part !== "").join("\n\n"))}
          >
            Insert an example script
          </Button>
        </div>
      </MissingModelNotice>
      <label className="field">
        <span>What is to be done?</span>
        <textarea className="textarea" required value={prompt} onChange={(event) => setPrompt(event.target.value)} />
      </label>
      <TextField label="Title (optional)" value={title} onChange={setTitle} />
      <TextField label="Ticket (optional)" placeholder="linear:ENG-1" value={ticket} onChange={setTicket} />
    </FormDialog>
  );
}
