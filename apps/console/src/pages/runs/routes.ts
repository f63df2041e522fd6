import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../../app/root-route.tsx";
import { runsSearch } from "./runs-search.ts";

export const runsRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/runs",
    validateSearch: runsSearch,
    component: lazyRouteComponent(() => import("./runs-page.tsx")),
  }),
] as const;
