import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../../app/root-route.tsx";
import { pullRequestsSearch } from "./pull-requests-search.ts";

export const pullRequestsRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/pull-requests",
    validateSearch: pullRequestsSearch,
    component: lazyRouteComponent(() => import("./pull-requests-page.tsx")),
  }),
] as const;
