import { useState, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, idempotencyKey } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { Card, EmptyState, Facts, usePageDetail } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { useToasts } from "../../ui/toasts.tsx";
import { AutomationDialog, settingsOf } from "./automation-dialog.tsx";
import { DecisionTable } from "./decision-table.tsx";
import { JsonBlock } from "./json-block.tsx";
import { inFactory, type FactoryTab } from "./in-factory.tsx";

type Automation = components["schemas"]["Automation"];
const ROUTE = "/factories/$factoryUid/automations/$automationUid";
const PAGE_SIZE = 30;
const REFRESH_MS = 5_000;

/** An automation, and why it did or did not fire. */
function AutomationPage({ factoryUid }: FactoryTab): ReactNode {
  const { automationUid } = getRouteApi(ROUTE).useParams();
  const { cursor } = getRouteApi(ROUTE).useSearch();
  const navigate = useNavigate({ from: ROUTE });
  const {
    data: automation,
    error,
    refetch,
  } = useQuery({
    queryKey: ["factories", factoryUid, "automations", automationUid],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/automations/{automationUid}", {
          params: { path: { uid: factoryUid, automationUid } },
          signal,
        }),
      ),
  });
  usePageDetail(automation?.name);
  if (!automation)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  return (
    <>
      <Card
        title={<SafeText>{automation.name}</SafeText>}
        actions={<AutomationActions factoryUid={factoryUid} automation={automation} />}
      >
        <div className="stack">
          <Facts
            entries={[
              [
                "State",
                automation.enabled ? (
                  <span className="badge good">Enabled</span>
                ) : (
                  <span className="line">
                    <span className="badge">Disabled</span>
                    {automation.disabled_reason !== null && <SafeText>{automation.disabled_reason}</SafeText>}
                  </span>
                ),
              ],
              ["Agent", <SafeText key="agent">{automation.agent ?? "foreman"}</SafeText>],
              ["Model", automation.model && <SafeText>{automation.model}</SafeText>],
              ["Runner", automation.runner && <SafeText>{automation.runner}</SafeText>],
              ["Defined by", automation.management === "files" ? "the factory's files" : "the console or the API"],
              ["Last fired", automation.last_fired_at && <Time at={automation.last_fired_at} />],
              ["Id", <Id key="id" value={automation.uid} />],
              [
                "Runs",
                <Link key="runs" to="/runs" search={{ automation_id: automation.uid }}>
                  Runs of this automation
                </Link>,
              ],
            ]}
          />
        </div>
      </Card>
      <h2>Why it did or did not fire</h2>
      <ListView
        queryKey={["factories", factoryUid, "decisions", "of", automationUid]}
        refetchMs={REFRESH_MS}
        load={(at, signal) =>
          dataOf(
            api.GET("/api/v1/factory/{uid}/automations/{automationUid}/decisions", {
              params: { path: { uid: factoryUid, automationUid }, query: { limit: PAGE_SIZE, cursor: at } },
              signal,
            }),
          )
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ decisions }) => decisions.length === 0}
        cursor={cursor}
        onCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={
          <EmptyState title="No decisions yet">
            No event that a trigger listens to has arrived. Check that the sender reaches the webhook or the code host
            is connected; the log of a webhook shows every delivery.
          </EmptyState>
        }
      >
        {({ decisions }) => <DecisionTable factoryUid={factoryUid} decisions={decisions} isOfOneAutomation />}
      </ListView>
      <Card title="Prompt">
        <pre className="payload" tabIndex={0} role="region" aria-label="Prompt">
          <SafeText>{automation.prompt}</SafeText>
        </pre>
      </Card>
      <JsonBlock label="Triggers" value={automation.triggers} />
    </>
  );
}

function AutomationActions({ factoryUid, automation }: { factoryUid: string; automation: Automation }): ReactNode {
  const mayManage = useMay("factory.manage");
  const mayRun = useMay("run.create");
  const [isEditing, setEditing] = useState(false);
  const queries = useQueryClient();
  const toasts = useToasts();
  const params = { path: { uid: factoryUid, automationUid: automation.uid } };
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["factories", factoryUid] });
  const toggle = useMutation({
    mutationFn: () =>
      dataOf(
        api.PUT("/api/v1/factory/{uid}/automations/{automationUid}", {
          params,
          body: { ...settingsOf(automation), enabled: !automation.enabled },
        }),
      ),
    onSuccess: ({ enabled }) => {
      toasts.success(enabled ? "Enabled. Its runs are created in your name." : "Disabled.");
      return refresh();
    },
    onError: (error: unknown) => toasts.failure(error),
  });
  const run = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/factory/{uid}/automations/{automationUid}/run", {
          params: { ...params, header: idempotencyKey() },
        }),
      ),
    onSuccess: ({ run_id: runId }) => {
      toasts.success(runId === null ? "The run is being created." : "The run is created.");
      return refresh();
    },
    onError: (error: unknown) => toasts.failure(error),
  });
  return (
    <span className="line">
      {automation.management === "live" && (
        <Button isSmall disabled={!mayManage} onClick={() => setEditing(true)}>
          Edit
        </Button>
      )}
      {isEditing && (
        <AutomationDialog factoryUid={factoryUid} automation={automation} onClose={() => setEditing(false)} />
      )}
      <Button isSmall disabled={!mayManage || toggle.isPending} onClick={() => toggle.mutate()}>
        {automation.enabled ? "Disable" : "Enable"}
      </Button>
      <Button isSmall disabled={!mayRun || run.isPending} onClick={() => run.mutate()}>
        Run now
      </Button>
      <CopyCommands
        path={`/factory/${factoryUid}/automations/${automation.uid}`}
        cli={`automation get ${automation.uid} --factory ${factoryUid}`}
      />
    </span>
  );
}

export default inFactory(AutomationPage);
