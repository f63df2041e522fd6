import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { factoriesQuery } from "../api/queries.ts";
import type { components } from "../gen/api.ts";
import { ErrorView } from "../ui/error-view.tsx";
import { EmptyState, Page } from "../ui/page.tsx";
import { Select } from "../ui/select-field.tsx";

export type Factory = components["schemas"]["Factory"];

type Props = {
  readonly title: string;
  /** Uid of the factory in the URL. Default: the first factory. */
  readonly uid: string | undefined;
  readonly onChoose: (uid: string) => void;
  readonly actions?: (factory: Factory) => ReactNode;
  /** Filters beside the choice of the factory. */
  readonly filters?: ReactNode;
  readonly children: (factory: Factory) => ReactNode;
};

/** A page about one factory, with a choice among the team's factories. Without factories it states how to create one. */
export function FactoryPage({ title, uid, onChoose, actions, filters, children }: Props): ReactNode {
  const { data, error, refetch } = useQuery(factoriesQuery);
  const factories = data?.factories ?? [];
  const factory = factories.find((each) => each.uid === uid) ?? factories[0];
  return (
    <Page title={title} actions={factory && actions?.(factory)}>
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {!data && !error && <p className="soft">Loading…</p>}
      {data && !factory && (
        <EmptyState title="No factory yet">
          <Link to="/factories" search={{ dialog: "create" }} className="button primary">
            Create factory
          </Link>
        </EmptyState>
      )}
      {factory && (
        <>
          <div className="filters">
            <Select
              label="Factory"
              value={factory.uid}
              choices={factories.map((each) => ({ value: each.uid, label: each.name }))}
              onChange={onChoose}
            />
            {filters}
          </div>
          {children(factory)}
        </>
      )}
    </Page>
  );
}
