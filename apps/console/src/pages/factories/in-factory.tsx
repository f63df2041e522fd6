import type { ComponentType, ReactNode } from "react";
import { Link, useParams } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { ForemanNotice } from "../../app/foreman-notice.tsx";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { factoryQuery, managementText } from "./factory-queries.ts";

const TABS = [
  ["/factories/$factoryUid", "Definition"],
  ["/factories/$factoryUid/plan", "Plan and apply"],
  ["/factories/$factoryUid/branches", "Branches"],
  ["/factories/$factoryUid/agents", "Agents"],
  ["/factories/$factoryUid/skills", "Skills"],
  ["/factories/$factoryUid/automations", "Automations"],
  ["/factories/$factoryUid/decisions", "Decisions"],
  ["/factories/$factoryUid/webhooks", "Webhooks"],
] as const;

export type FactoryTab = { readonly factoryUid: string };

/** Returns a page whose content is below the name and the tabs of the factory in the URL. */
export const inFactory = (Content: ComponentType<FactoryTab>) =>
  function FactoryPage(): ReactNode {
    const { factoryUid = "" } = useParams({ strict: false });
    return (
      <FactoryFrame factoryUid={factoryUid}>
        <Content key={factoryUid} factoryUid={factoryUid} />
      </FactoryFrame>
    );
  };

function FactoryFrame({ factoryUid, children }: FactoryTab & { children: ReactNode }): ReactNode {
  const { data: factory, error, refetch } = useQuery(factoryQuery(factoryUid));
  if (!factory)
    return error ? (
      <Page title="Factory">
        <ErrorView error={error} onRetry={() => void refetch()} />
      </Page>
    ) : (
      <p className="soft">Loading…</p>
    );
  return (
    <Page
      title={factory.name}
      subtitle={
        <span className="line">
          {factory.description !== null && factory.description !== "" && <SafeText>{factory.description}</SafeText>}
          <span>Defined by: {managementText(factory.management)}</span>
          {factory.queue_paused && <span className="badge wait">Queue paused</span>}
          <Id value={factoryUid} />
        </span>
      }
      actions={
        <>
          <Link to="/work" search={{ factory: factoryUid }} className="button">
            Board
          </Link>
          <Link to="/runs" search={{ factory_uid: [factoryUid] }} className="button">
            Runs
          </Link>
          <CopyCommands path={`/factory/${factoryUid}`} />
        </>
      }
    >
      <nav className="tabs" aria-label="Factory">
        {TABS.map(([to, label]) => (
          <Link
            key={to}
            to={to}
            params={{ factoryUid }}
            activeOptions={{ exact: label === "Definition", includeSearch: false }}
          >
            {label}
          </Link>
        ))}
      </nav>
      <ForemanNotice factory={factory} />
      {children}
    </Page>
  );
}
