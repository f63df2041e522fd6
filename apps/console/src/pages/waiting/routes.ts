import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../../app/root-route.tsx";

export const waitingRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/waiting",
    component: lazyRouteComponent(() => import("./waiting-page.tsx")),
  }),
] as const;
