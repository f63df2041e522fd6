import { useState, type ReactNode } from "react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import type { components } from "../../gen/api.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { choicesOf, SelectField } from "../../ui/select-field.tsx";
import { TextField } from "../../ui/text-field.tsx";

type Webhook = components["schemas"]["Webhook"];
type WithSecret = components["schemas"]["WebhookWithSecret"];
type Scheme = NonNullable<Webhook["signature_scheme"]>;

const MODES: Readonly<Record<Webhook["auth_mode"], string>> = {
  token: "Bearer token in the Authorization header",
  url_token: "Token in the address",
  signature: "Signature of the body",
};
const SCHEMES = [
  ...(["generic_hmac_sha256", "standard_webhooks", "github", "gitlab", "linear", "pagerduty"] as const),
  ...(["sentry", "shopify", "slack", "stripe", "vercel"] as const),
] satisfies readonly Scheme[];

type Props = {
  readonly factoryUid: string;
  /** The webhook to change. Absent: a new one. */
  readonly webhook?: Webhook;
  readonly onClose: () => void;
  /** Receives the response of a create, which alone contains a generated secret. */
  readonly onCreated?: (created: WithSecret) => void;
};

/** Creates a webhook, or changes its name, its delivery id header and whether it accepts deliveries. */
export function WebhookDialog({ factoryUid, webhook, onClose, onCreated }: Props): ReactNode {
  const queries = useQueryClient();
  const [name, setName] = useState(webhook?.name ?? "");
  const [idHeader, setIdHeader] = useState(webhook?.delivery_id_header ?? "");
  const [isEnabled, setEnabled] = useState(webhook?.enabled ?? true);
  const [mode, setMode] = useState<Webhook["auth_mode"]>("token");
  const [scheme, setScheme] = useState<Scheme>("generic_hmac_sha256");
  const [signatureHeader, setSignatureHeader] = useState("X-Signature");
  const changed = { name: name.trim(), delivery_id_header: idHeader.trim() || null };
  const body = {
    ...changed,
    auth_mode: mode,
    ...(mode === "signature" ? { signature_scheme: scheme } : {}),
    ...(mode === "signature" && scheme === "generic_hmac_sha256" ? { signature_header: signatureHeader.trim() } : {}),
  };
  const header = useIdempotencyKey(body);
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["factories", factoryUid, "webhooks"] });
  const create = useMutation({
    gcTime: 0, // the response contains the secret
    mutationFn: () =>
      dataOf(api.POST("/api/v1/factory/{uid}/webhooks", { params: { path: { uid: factoryUid }, header }, body })),
    onSuccess: (created) => {
      void refresh();
      onCreated?.(created);
    },
  });
  const save = useMutation({
    mutationFn: (webhookUid: string) =>
      dataOf(
        api.PUT("/api/v1/factory/{uid}/webhooks/{webhookUid}", {
          params: { path: { uid: factoryUid, webhookUid } },
          body: { ...changed, enabled: isEnabled },
        }),
      ),
    onSuccess: () => {
      void refresh();
      onClose();
    },
  });
  return (
    <FormDialog
      title={webhook ? "Edit the webhook" : "Create a webhook"}
      action={webhook ? "Save" : "Create"}
      isPending={create.isPending || save.isPending}
      error={create.error ?? save.error}
      onSubmit={() => (webhook ? save.mutate(webhook.uid) : create.mutate())}
      onClose={onClose}
    >
      <TextField label="Name" required value={name} onChange={setName} />
      {!webhook && (
        <>
          <SelectField label="Senders authenticate with" value={mode} choices={choicesOf(MODES)} onChange={setMode} />
          {mode === "signature" && (
            <SelectField
              label="Signature of"
              value={scheme}
              choices={SCHEMES.map((value) => ({ value, label: value.replaceAll("_", " ") }))}
              onChange={setScheme}
            />
          )}
          {mode === "signature" && scheme === "generic_hmac_sha256" && (
            <TextField
              label="Header with the hexadecimal signature"
              required
              value={signatureHeader}
              onChange={setSignatureHeader}
            />
          )}
        </>
      )}
      <TextField label="Header with the sender's event id (optional)" value={idHeader} onChange={setIdHeader} />
      {webhook && (
        <label className="check">
          <input type="checkbox" checked={isEnabled} onChange={(event) => setEnabled(event.target.checked)} />
          Accepts deliveries
        </label>
      )}
    </FormDialog>
  );
}

/** Replaces the secret of a webhook: by a generated one, or by the one that the sender's system shows. */
export function RotateDialog({
  factoryUid,
  webhookUid,
  onClose,
  onRotated,
}: {
  factoryUid: string;
  webhookUid: string;
  onClose: () => void;
  onRotated: (rotated: WithSecret) => void;
}): ReactNode {
  const queries = useQueryClient();
  const [secret, setSecret] = useState("");
  const rotate = useMutation({
    gcTime: 0, // the response contains the secret
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/factory/{uid}/webhooks/{webhookUid}/rotate", {
          params: { path: { uid: factoryUid, webhookUid } },
          body: secret === "" ? {} : { secret },
        }),
      ),
    onSuccess: (rotated) => {
      void queries.invalidateQueries({ queryKey: ["factories", factoryUid, "webhooks"] });
      onRotated(rotated);
    },
  });
  return (
    <FormDialog
      title="Rotate the secret"
      action="Rotate"
      isDanger
      isPending={rotate.isPending}
      error={rotate.error}
      onSubmit={() => rotate.mutate()}
      onClose={onClose}
    >
      <p>Deliveries with the present secret are refused from now on.</p>
      <TextField
        label="Secret that the sender's system shows (absent: one is generated)"
        type="password"
        autoComplete="off"
        value={secret}
        onChange={setSecret}
      />
    </FormDialog>
  );
}
