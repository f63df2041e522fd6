import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import * as v from "valibot";
import { rootRoute } from "../../app/root-route.tsx";
import { searchChoice, searchText } from "../../ui/search-params.ts";
import { SLOT_STATES } from "./slot-states.ts";

export const schedulesRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/schedules",
    validateSearch: v.object({
      q: searchText,
      state: searchChoice("enabled", "paused"),
      dialog: searchChoice("create"),
    }),
    component: lazyRouteComponent(() => import("./schedules-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/schedules/$scheduleId",
    validateSearch: v.object({ state: searchChoice(...SLOT_STATES), cursor: searchText }),
    staticData: { parents: [{ label: "Schedules", to: "/schedules" }] },
    component: lazyRouteComponent(() => import("./schedule-page.tsx")),
  }),
] as const;
