import { storedValue } from "./stored-value.ts";

/** Uid of the team that requests act in. Absent: all teams of the caller. */
export const activeTeam = storedValue("millwright.team");
