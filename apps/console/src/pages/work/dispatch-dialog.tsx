import { useState, type FormEvent, type ReactNode } from "react";
import { useNavigate } from "@tanstack/react-router";
import { useMutation } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ErrorView } from "../../ui/error-view.tsx";

type Factory = components["schemas"]["Factory"];

/** Sends a prompt to a factory's foreman and opens its run. */
export function DispatchDialog({ factory, onClose }: { factory: Factory; onClose: () => void }): ReactNode {
  const navigate = useNavigate();
  const [prompt, setPrompt] = useState("");
  const [title, setTitle] = useState("");
  const [ticket, setTicket] = useState("");
  const body = {
    prompt,
    ...(title.trim() === "" ? {} : { title: title.trim() }),
    ...(ticket.trim() === "" ? {} : { ticket_ref: ticket.trim() }),
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
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    dispatch.mutate();
  };
  return (
    <Dialog title={`Dispatch work to ${factory.name}`} onClose={onClose}>
      <form onSubmit={submit}>
        <div className="body">
          <label className="field">
            <span>What is to be done?</span>
            <textarea
              className="textarea"
              required
              autoFocus
              value={prompt}
              onChange={(event) => setPrompt(event.target.value)}
            />
          </label>
          <label className="field">
            <span>Title (optional)</span>
            <input className="input" value={title} onChange={(event) => setTitle(event.target.value)} />
          </label>
          <label className="field">
            <span>Ticket (optional)</span>
            <input
              className="input"
              placeholder="linear:ENG-1"
              value={ticket}
              onChange={(event) => setTicket(event.target.value)}
            />
          </label>
          {dispatch.error && <ErrorView error={dispatch.error} />}
        </div>
        <footer>
          <Button onClick={onClose}>Close</Button>
          <Button look="primary" type="submit" disabled={dispatch.isPending || prompt.trim() === ""}>
            Dispatch
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
