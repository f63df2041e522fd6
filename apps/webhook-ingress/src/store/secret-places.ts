/** Where a sealed secret belongs: a webhook's own, or the team's of that name. A sealed text copied elsewhere does not open. */
export const secretPlace = (webhookUid: string, teamUid: string, secretName: string | null): string =>
  secretName === null ? `webhook:${webhookUid}` : teamSecretPlace(teamUid, secretName);

export const teamSecretPlace = (teamUid: string, name: string): string => `team secret:${teamUid}:${name}`;

export const codeHostSecretPlace = (codeHostUid: string): string => `code host webhook:${codeHostUid}`;
