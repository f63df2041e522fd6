import type { ReactNode } from "react";
import { Link, useLocation } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { agentsQuery } from "../api/queries.ts";
import type { components } from "../gen/api.ts";

type Factory = components["schemas"]["Factory"];
type Agent = components["schemas"]["AgentIdentity"];

/** How often the agents are read while there is no foreman: an apply may take effect after its response. */
const REFRESH_MS = 3_000;

const hasForeman = (agents: readonly Agent[]): boolean =>
  agents.some(({ agent_type: type, available }) => type === "FOREMAN" && available);

/** Returns whether the factory has no foreman to receive work. False while this is unknown. */
export function useForemanMissing(factoryUid: string): boolean {
  const { data } = useQuery({
    ...agentsQuery(factoryUid),
    refetchInterval: ({ state }) => (state.data && !hasForeman(state.data.agents) ? REFRESH_MS : false),
  });
  return data !== undefined && !hasForeman(data.agents);
}

/** States that the factory cannot receive work yet, and what to do. Empty if it can. */
export function ForemanNotice({ factory }: { factory: Factory }): ReactNode {
  const isMissing = useForemanMissing(factory.uid);
  const { pathname } = useLocation();
  if (!isMissing) return null;
  const planPath = `/factories/${factory.uid}/plan`;
  return (
    <div className="notice" role="status">
      <p>
        {factory.definition_version === 0
          ? "No definition is applied yet, so the factory has no foreman to receive work."
          : "The factory has no foreman to receive work. Apply a definition with an agent of type FOREMAN."}
      </p>
      <p>
        {pathname === planPath ? (
          "“Plan” below shows the changes, then “Apply” makes them."
        ) : (
          <Link to="/factories/$factoryUid/plan" params={{ factoryUid: factory.uid }}>
            Plan and apply
          </Link>
        )}
      </p>
    </div>
  );
}
