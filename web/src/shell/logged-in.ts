/** Whether somebody logged in on this page: its cookie is not for scripts to read. Where no login is asked for, nobody did. */
const STORED = 'throughline-logged-in';

export function isLoggedIn(): boolean {
  return localStorage.getItem(STORED) !== null;
}

export function noteLogin(loggedIn: boolean): void {
  if (loggedIn) localStorage.setItem(STORED, 'yes');
  else localStorage.removeItem(STORED);
}
