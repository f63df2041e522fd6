import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import * as v from "valibot";
import { rootRoute } from "../../app/root-route.tsx";
import { searchChoice, searchText } from "../../ui/search-params.ts";
import { artifactsSearch } from "./artifacts-search.ts";

export const runRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/runs/$runId",
    validateSearch: v.object({
      /** Which events are shown. Default: the conversation. */
      show: searchChoice("all", "lifecycle"),
      /** Sequence number of the step that the link points to. */
      step: searchText,
      /** Token of a session link, which shows the run without signing in. */
      view: searchText,
    }),
    staticData: { parents: [{ label: "Runs", to: "/runs" }] },
    component: lazyRouteComponent(() => import("./run-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/runs/$runId/pull-requests/$pullRequestUid",
    validateSearch: v.object({ view: searchText }),
    staticData: { parents: [{ label: "Runs", to: "/runs" }] },
    component: lazyRouteComponent(() => import("./pull-request-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/artifacts",
    validateSearch: artifactsSearch,
    component: lazyRouteComponent(() => import("./artifacts-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/conversations/$conversationId",
    staticData: { parents: [{ label: "Runs", to: "/runs" }] },
    component: lazyRouteComponent(() => import("./conversation-page.tsx")),
  }),
] as const;
