/**
 * Returns the context of a sealed secret: a webhook's own, or the team's of that name. A sealed text does not open in
 * another context.
 */
export const secretContext = (webhookUid: string, teamUid: string, secretName: string | null): string =>
  secretName === null ? `webhook:${webhookUid}` : teamSecretContext(teamUid, secretName);

export const teamSecretContext = (teamUid: string, name: string): string => `team secret:${teamUid}:${name}`;

export const codeHostSecretContext = (codeHostUid: string): string => `code host webhook:${codeHostUid}`;
