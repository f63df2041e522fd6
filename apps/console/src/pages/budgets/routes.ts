import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../../app/root-route.tsx";

export const budgetsRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/budgets",
    component: lazyRouteComponent(() => import("./budgets-page.tsx")),
  }),
] as const;
