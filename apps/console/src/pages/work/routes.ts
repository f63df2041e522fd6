import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import * as v from "valibot";
import { rootRoute } from "../../app/root-route.tsx";
import { searchChoice, searchText } from "../../ui/search-params.ts";

export const workRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/work",
    validateSearch: v.object({
      /** Uid of the factory. Default: the first one. */
      factory: searchText,
      q: searchText,
      dialog: searchChoice("dispatch", "create"),
    }),
    component: lazyRouteComponent(() => import("./work-page.tsx")),
  }),
] as const;
