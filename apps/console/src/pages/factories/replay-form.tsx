import { useState, type ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, idempotencyKey } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card } from "../../ui/page.tsx";
import { Select } from "../../ui/select-field.tsx";
import { Why } from "./decision-table.tsx";
import { automationChoices } from "./factory-queries.ts";

type Props = { readonly factoryUid: string; readonly webhookUid: string; readonly deliveryUid: string };

/** Evaluates an automation for the delivery again: dry, or with a run if it matches. */
export function ReplayForm({ factoryUid, webhookUid, deliveryUid }: Props): ReactNode {
  const mayRun = useMay("run.create");
  const queries = useQueryClient();
  const [chosen, setChosen] = useState<string>();
  const { data: { automations } = { automations: [] } } = useQuery(automationChoices(factoryUid));
  const automationUid = chosen ?? automations[0]?.uid;
  const replay = useMutation({
    mutationFn: ({ automation, isDry }: { automation: string; isDry: boolean }) =>
      dataOf(
        api.POST("/api/v1/factory/{uid}/webhooks/{webhookUid}/deliveries/{deliveryUid}/replay", {
          params: { path: { uid: factoryUid, webhookUid, deliveryUid }, header: idempotencyKey() },
          body: { automation_uid: automation, dry_run: isDry },
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["factories", factoryUid] }),
  });
  if (automationUid === undefined)
    return (
      <Card title="Replay">
        <p>
          A replay evaluates an automation for this delivery again. The factory has no automation yet; create one with{" "}
          <code>npx millwright automation create FILE.json --factory {factoryUid}</code>
        </p>
      </Card>
    );
  const run = (isDry: boolean): void => replay.mutate({ automation: automationUid, isDry });
  return (
    <Card
      title="Replay"
      actions={
        <CopyCommands
          path={`/factory/${factoryUid}/webhooks/${webhookUid}/deliveries/${deliveryUid}/replay`}
          method="POST"
          body={{ automation_uid: automationUid, dry_run: true }}
          cli={`automation replay ${automationUid} ${webhookUid} ${deliveryUid} --dry-run --factory ${factoryUid}`}
        />
      }
    >
      <div className="stack">
        <p className="soft">
          Uses the automation as it is now. A dry replay only shows the outcome; a real one starts another run if the
          automation matches.
        </p>
        <div className="filters">
          <Select
            label="Automation"
            value={automationUid}
            choices={automations.map(({ uid, name }) => ({ value: uid, label: name }))}
            onChange={setChosen}
          />
          <Button disabled={!mayRun || replay.isPending} onClick={() => run(true)}>
            Dry replay
          </Button>
          <Button disabled={!mayRun || replay.isPending} onClick={() => run(false)}>
            Replay
          </Button>
        </div>
        {replay.error && <ErrorView error={replay.error} />}
        {replay.data && (
          <div role="status" className="notice">
            <h3>{replay.variables.isDry ? replay.data.label : `Replayed: ${replay.data.decision.outcome}`}</h3>
            <Why decision={replay.data.decision} />
            {replay.data.decision.run_id !== null && (
              <Link to="/runs/$runId" params={{ runId: replay.data.decision.run_id }}>
                Open the run
              </Link>
            )}
          </div>
        )}
      </div>
    </Card>
  );
}
