import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card, EmptyState, Facts } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { Diagnostics } from "./diagnostics.tsx";
import { sourceQuery } from "./factory-queries.ts";
import { PlanTable } from "./plan-table.tsx";
import { useApply } from "./use-apply.ts";
import { inFactory, type FactoryTab } from "./in-factory.tsx";

type Source = components["schemas"]["FactorySource"];

const STATES: Readonly<Record<Source["state"], readonly [look: string, text: string]>> = {
  NONE: ["", "Not applied"],
  APPLYING: ["busy", "Applying"],
  APPLIED: ["good", "Applied"],
  FAILED: ["bad", "Failed"],
};

/** The definition's source, its state, and its drift. */
function DefinitionPage({ factoryUid }: FactoryTab): ReactNode {
  const { data: source, error, refetch } = useQuery(sourceQuery(factoryUid));
  if (!source)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  if (source.kind === "none")
    return (
      <EmptyState title="No definition yet">
        A definition describes the agents, automations and webhooks of the factory as files.{" "}
        <Link to="/factories/$factoryUid/plan" params={{ factoryUid }}>
          Write one
        </Link>
        , or apply a directory: <code>npx millwright factory apply DIR --factory {factoryUid}</code>
      </EmptyState>
    );
  const [look, text] = STATES[source.state];
  return (
    <>
      <Card title="Definition" actions={<CopyCommands path={`/factory/${factoryUid}/source`} />}>
        <Facts
          entries={[
            [
              "State",
              <span key="state" className={`badge ${look}`}>
                {text}
              </span>,
            ],
            ["Active version", source.active_version > 0 && source.active_version],
            ["Revision", source.active_revision && <code>{source.active_revision}</code>],
            ["Applied", source.applied_at && <Time at={source.applied_at} />],
            ["Repository", source.repository_url && <SafeText>{source.repository_url}</SafeText>],
            ["Branch", source.branch && <SafeText>{source.branch}</SafeText>],
            ["Directory", source.directory && <SafeText>{source.directory}</SafeText>],
            ["Secret", source.secret_name && <SafeText>{source.secret_name}</SafeText>],
            ["Files", source.kind === "files" && source.files.length],
          ]}
        />
      </Card>
      <Diagnostics diagnostics={source.diagnostics} files={source.files} />
      {source.active_version > 0 && <Drift factoryUid={factoryUid} version={source.active_version} />}
    </>
  );
}

type DriftProps = { readonly factoryUid: string; readonly version: number };

function Drift({ factoryUid, version }: DriftProps): ReactNode {
  const mayApply = useMay("source.apply");
  const apply = useApply(factoryUid);
  const {
    data: drift,
    error,
    refetch,
  } = useQuery({
    queryKey: ["factories", factoryUid, "drift", version],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/factory/{uid}/source/drift", { params: { path: { uid: factoryUid } }, signal })),
  });
  if (!drift)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Comparing…</p>;
  const { serving, head } = drift;
  return (
    <>
      {apply.error && <ErrorView error={apply.error} />}
      <Card
        title="Live resources compared with the active version"
        actions={
          serving.length > 0 && (
            <Button isSmall disabled={!mayApply || apply.isPending} onClick={() => apply.mutate({ repair: true })}>
              Repair
            </Button>
          )
        }
      >
        {serving.length === 0 ? (
          <p>No drift: the live resources are as version {drift.active_version} defines them.</p>
        ) : (
          <>
            <p>Live resources were changed outside the definition. A repair makes these changes:</p>
            <PlanTable caption="Changes of a repair" items={serving} />
          </>
        )}
      </Card>
      <Card title="Registered source compared with the active version">
        {head.state === "SAME" && <p>The registered source is the active version.</p>}
        {head.state === "DIFFERS" && (
          <>
            <p>
              The registered source differs. Applying it makes these changes.{" "}
              <Link to="/factories/$factoryUid/plan" params={{ factoryUid }}>
                Plan and apply
              </Link>
            </p>
            <PlanTable caption="Changes of the registered source" items={head.plan} />
          </>
        )}
        {head.state === "INVALID" && (
          <>
            <p>The registered source has errors and cannot be applied.</p>
            <Diagnostics diagnostics={head.diagnostics} />
          </>
        )}
        {head.state === "UNKNOWN" && (
          <p>
            The registered source is not known.{" "}
            {head.error ? <SafeText>{head.error.message}</SafeText> : "The repository has not been read yet."}
          </p>
        )}
      </Card>
    </>
  );
}

export default inFactory(DefinitionPage);
