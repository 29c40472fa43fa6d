(* All definitions and statements that are proved here, without the proofs.

   A mathematician should be able to read this file from top to bottom and agree that it
   says what docs/theory says. `Checked.v` proves each `Definition ..._statement : Prop`;
   `make proofs` prints what each proof assumes: nothing beyond the logic of Coq.

   Conventions. Numbers are from any ordered field R with decidable order (`realFieldType`:
   the rationals and the real numbers are two). States are a finite type S. A level s is
   kept as the factor e^s, so that sums of levels are products and no analysis is needed;
   a bound on log(a/b) is one on a <= F * b. "Infinite" is not a number: bounds hold for
   the pairs of a relation `finite` only. *)
From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** * 1. Levels and releases *)

Section Levels.
Variables (R : realFieldType) (S : finType).

(* The first time point, the last one, and the factor. *)
Definition window : Type := (nat * nat * R)%type.
Definition first (w : window) : nat := w.1.1.
Definition last (w : window) : nat := w.1.2.
Definition factor (w : window) : R := w.2.

Definition valid (w : window) : bool := (first w <= last w)%N && (1 <= factor w).

(* The content of the window from a to b of a series. *)
Definition content (a b : nat) (s : seq S) : seq S := take (b.+1 - a) (drop a s).

Definition changed (w : window) (s s' : seq S) : bool :=
  content (first w) (last w) s != content (first w) (last w) s'.

(* d: every window whose content changes is charged once. *)
Definition paid (levels : seq window) (s s' : seq S) : R :=
  \prod_(w <- levels | changed w s s') factor w.

Definition forward (levels : seq window) (t : nat) : R :=
  \prod_(w <- levels | first w == t) factor w.
Definition backward (levels : seq window) (t : nat) : R :=
  \prod_(w <- levels | last w == t) factor w.
Definition own (levels : seq window) (t : nat) : R :=
  \prod_(w <- levels | (first w <= t <= last w)%N) factor w.

(* The forward level of the node of depth j in a series of T nodes. *)
Definition begins (levels : seq window) (T j : nat) : R :=
  \prod_(w <- levels | (first w + j.+1 == T)%N) factor w.

(* The density of a transcript, as a function of the data, moves by at most its levels. *)
Definition within (T : nat) (levels : seq window) (g : seq S -> R) : Prop :=
  (forall s, size s = T -> 0 <= g s) /\
  (forall s s', size s = T -> size s' = T -> g s <= paid levels s s' * g s').

End Levels.

(* docs/theory/sweep.md, Setting: "Releases use fresh coins and are chosen adaptively; along
   any transcript their joint density is a function g of the data." The next release, its
   windows and its levels may depend on the outputs so far. *)
Section Transcripts.
Variables (R : realFieldType) (S : finType) (O : Type).
Variables (density : seq O -> O -> seq S -> R) (spent : seq O -> seq (window R)).

Fixpoint transcript_from (history o : seq O) (s : seq S) : R :=
  if o is y :: o' then density history y s * transcript_from (rcons history y) o' s else 1.

Fixpoint levels_from (history o : seq O) : seq (window R) :=
  if o is y :: o' then spent history ++ levels_from (rcons history y) o' else [::].

End Transcripts.

(* "Levels add up transcript by transcript, so adaptivity costs nothing." *)
Definition transcript_statement : Prop :=
  forall (R : realFieldType) (S : finType) (O : Type)
    (density : seq O -> O -> seq S -> R) (spent : seq O -> seq (window R)) (T : nat),
    (forall history, all (@valid R) (spent history)) ->
    (forall history y, within T (spent history) (density history y)) ->
  forall o : seq O,
    all (@valid R) (levels_from spent [::] o) /\
    within T (levels_from spent [::] o) (transcript_from density [::] o).

(** * 2. One side of a node *)

(* All nodes in one direction of a node, listed outwards: the head of a list is the
   next node, its last element the end of the series. A node with k nodes beyond it has depth
   k. The right side of a chain has the matrices as kernels and the boundary value 1, the
   left side the transposed matrices and the law of the first node. *)
Section Sides.
Variables (R : realFieldType) (S : finType).

(* K j x z: weight of the step from x, at depth j.+1, to z, at depth j.
   e x: weight of x at depth 0. *)
Variables (K : nat -> S -> S -> R) (e : S -> R).

(* The weighted sum of h over all states of the nodes beyond a node of depth k in state x. *)
Fixpoint beyond (k : nat) (x : S) (h : seq S -> R) : R :=
  if k is j.+1 then \sum_z K j x z * beyond j z (fun s => h (z :: s))
  else e x * h [::].

(* m.+1 steps at once, from depth (m + k).+1 to depth k. *)
Fixpoint steps (m k : nat) (x z : S) : R :=
  if m is m'.+1 then \sum_y K (m + k) x y * steps m' k y z else K k x z.

(* D s s': the cost of changing the nodes of s into those of s', as a factor. *)
Variable D : seq S -> seq S -> R.

Definition moves_by (k : nat) (h : seq S -> R) : Prop :=
  forall s s', size s = k -> size s' = k -> h s <= D s s' * h s'.

Definition nonnegative (k : nat) (h : seq S -> R) : Prop :=
  forall s, size s = k -> 0 <= h s.

(* f j z z': the charge of the node of depth j for changing from z to z';
   g j: its largest charge. *)
Variables (f : nat -> S -> S -> R) (g : nat -> R).

Record charges : Prop := Charges {
  charge_ge0 : forall s s', 0 <= D s s';
  charge_refl : forall s, D s s = 1;
  charge_triangle : forall s s' s'', size s = size s' -> size s' = size s'' ->
    D s s'' <= D s s' * D s' s'';
  charge_cons : forall z z' s s', size s = size s' ->
    D (z :: s) (z' :: s') <= f (size s) z z' * D s s';
  charge_each_ge0 : forall j z z', 0 <= f j z z';
  charge_most : forall j z z', f j z z' <= g j;
  charge_most_ge0 : forall j, 0 <= g j }.

(* States that can occur at a depth. On the right all can; on the left a state that
   cannot occur is left out of every bound. *)
Variable occurs : nat -> pred S.

Record support : Prop := Support {
  step_ge0 : forall j x z, 0 <= K j x z;
  boundary_ge0 : forall x, 0 <= e x;
  occurs0 : forall x, ~~ occurs 0 x -> e x = 0;
  occursS : forall j x, ~~ occurs j.+1 x -> forall z, occurs j z -> K j x z = 0 }.

(* F k x x': a bound on the ratio; finite k x x': whether there is one. *)
Variables (F : nat -> S -> S -> R) (finite : nat -> rel S).

(* u is in U(A) with A = f + F, levels as factors. *)
Definition admissible (k : nat) (u : S -> R) : Prop :=
  (forall z, 0 <= u z) /\
  (forall z z', occurs k z -> occurs k z' -> z != z' -> finite k z z' ->
     u z <= f k z z' * F k z z' * u z').

(* m.+1 steps: the charges of the m nodes in between, times the program L. *)
Definition by_steps (k m : nat) (x x' : S) : Prop :=
  forall u, admissible k u ->
    (\prod_(k.+1 <= j < (m + k).+1) g j) * (\sum_(z | occurs k z) steps m k x z * u z)
      <= F (m + k).+1 x x' * (\sum_(z | occurs k z) steps m k x' z * u z).

(* To the end of the series: all nodes beyond are charged. *)
Definition by_total (k : nat) (x x' : S) : Prop :=
  (\prod_(0 <= j < k) g j) * beyond k x (fun=> 1)
    <= F k x x' * beyond k x' (fun=> 1).

Definition recursion : Prop :=
  forall k x x', occurs k x -> occurs k x' -> x != x' -> finite k x x' ->
    0 <= F k x x' /\
    (by_total k x x' \/ exists m j, k = (m + j).+1 /\ by_steps j m x x').

End Sides.

(* The recursion bounds every function that moves by D, at every depth. D is abstract here:
   the charges of windows (section 3), or of observed changes (section 5). *)
Definition side_statement : Prop :=
  forall (R : realFieldType) (S : finType) (K : nat -> S -> S -> R) (e : S -> R)
    (D : seq S -> seq S -> R) (f : nat -> S -> S -> R) (g : nat -> R)
    (occurs : nat -> pred S) (F : nat -> S -> S -> R) (finite : nat -> rel S),
    support K e occurs -> charges D f g -> recursion K e f g occurs F finite ->
  forall k x x' h, occurs k x -> occurs k x' -> x != x' -> finite k x x' ->
    nonnegative k h -> moves_by D k h ->
    beyond K e k x h <= F k x x' * beyond K e k x' h.

(** * 3. The sweep *)

Section Chain.
Variables (R : realFieldType) (S : finType).

(* m: the law of the first state; P t: the matrix from time t to time t.+1. *)
Variables (m : S -> R) (P : nat -> S -> S -> R).

Record chain : Prop := Chain {
  start_ge0 : forall x, 0 <= m x;
  matrix_ge0 : forall t x z, 0 <= P t x z }.

Fixpoint path (t : nat) (x : S) (s : seq S) : R :=
  if s is z :: s' then P t x z * path t.+1 z s' else 1.

Definition law (s : seq S) : R := if s is x :: s' then m x * path 0 x s' else 1.

(* P(X_i = x), and P(X_i = x) E[g | X_i = x], over all series of T states. *)
Definition probability (T i : nat) (x : S) : R :=
  \sum_(s : T.-tuple S | nth x s i == x) law s.
Definition partial_mean (T i : nat) (g : seq S -> R) (x : S) : R :=
  \sum_(s : T.-tuple S | nth x s i == x) law s * g s.
Definition conditional_mean (T i : nat) (g : seq S -> R) (x : S) : R :=
  partial_mean T i g x / probability T i x.

(* The two sides of a node. *)
Definition kernel_right (T j : nat) (x z : S) : R := P (T - j.+2) x z.
Definition kernel_left (j : nat) (x z : S) : R := P j z x.

End Chain.

(* docs/theory/sweep.md, Theorem. R_t is FR at depth T - 1 - t, B_t is FL at depth t; the
   number n of steps is m.+1, and each pair at each node may have its own. `occurs` holds of
   every state that can occur; a state that cannot is left out of the columns. *)
Definition sweep_statement : Prop :=
  forall (R : realFieldType) (S : finType) (m : S -> R) (P : nat -> S -> S -> R),
    chain m P ->
  forall (T i k : nat) (levels : seq (window R)),
    T = (i + k.+1)%N -> all (@valid R) levels ->
  forall (occurs : nat -> pred S),
    (forall x, ~~ occurs 0%N x -> m x = 0) ->
    (forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0) ->
  forall (FR FL : nat -> S -> S -> R) (finR finL : nat -> rel S),
    recursion (kernel_right P T) (fun=> 1) (fun j _ _ => begins levels T j)
      (begins levels T) (fun=> predT) FR finR ->
    recursion (kernel_left P) m (fun j _ _ => backward levels j) (backward levels)
      occurs FL finL ->
  forall (g : seq S -> R) (x x' : S),
    within T levels g ->
    0 < probability m P T i x -> 0 < probability m P T i x' -> x != x' ->
    finL i x x' -> finR k x x' ->
  conditional_mean m P T i g x
    <= own levels i * FL i x x' * FR k x x' *
       (probability m P T i x' / probability m P T i x) * conditional_mean m P T i g x'.

(** * 4. Certificates *)

Section Tree.
Variables (R : realFieldType) (S : finType).

(* A z z': the upper limit of u z / u z', if `limited z z'`. Every state has a parent and is at
   its upper or lower limit relative to it; `u` is the solution of the tree, which need not be
   feasible. `pass z` is the flow from z and its subtree to the parent: positive at an
   upper limit, negative at a lower one, 0 at the root. *)
Variables (A : S -> S -> R) (limited : rel S) (u : S -> R).
Variables (parent : S -> S) (pass : S -> R).

Record right_signs (c : S -> R) : Prop := RightSigns {
  tree_gt0 : forall z, 0 < u z;
  flow : forall z, c z * u z + \sum_(y | parent y == z) pass y <= pass z;
  at_upper : forall z, 0 < pass z ->
    [/\ z != parent z, limited z (parent z) & A z (parent z) * u (parent z) <= u z];
  at_lower : forall z, pass z < 0 ->
    [/\ z != parent z, limited (parent z) z & A (parent z) z * u z <= u (parent z)] }.

Definition feasible (v : S -> R) : Prop :=
  (forall z, 0 <= v z) /\
  (forall z z', z != z' -> limited z z' -> v z <= A z z' * v z').

End Tree.

(* docs/theory/sweep.md, Computing L: "Then L <= log (p.u) - log (q.u) + log lambda, whether u
   is feasible or not", in the form p.v <= L (q.v) for every feasible v, with c = p - L q. *)
Definition program_statement : Prop :=
  forall (R : realFieldType) (S : finType) (A : S -> S -> R) (limited : rel S) (u : S -> R)
    (parent : S -> S) (pass : S -> R) (p q v : S -> R) (L : R),
    right_signs A limited u parent pass (fun z => p z - L * q z) ->
    feasible A limited v ->
  \sum_z p z * v z <= L * (\sum_z q z * v z).

(* docs/theory/certificates.md: "a flow w >= 0 along the limits proves p.v <= L (q.v)", the dual of
   the program. *)
Definition flow_statement : Prop :=
  forall (R : realFieldType) (S : finType) (A : S -> S -> R) (limited : rel S) (w : S -> S -> R)
    (p q v : S -> R) (L : R),
    (forall z y, 0 <= w z y) -> (forall z y, w z y != 0 -> z != y /\ limited z y) ->
    (forall z, p z - L * q z - (\sum_y w z y) + (\sum_y w y z * A y z) <= 0) ->
    feasible A limited v ->
  \sum_z p z * v z <= L * (\sum_z q z * v z).

Section Endless.
Variables (R : realFieldType) (S : finType) (K : S -> S -> R) (e : S -> R).

(* The level of a node for each pair of states, and the largest one. *)
Variables (level : S -> S -> R) (most : R).

(* Powers of the matrix. *)
Fixpoint power (n : nat) (x z : S) : R :=
  if n is n'.+1 then \sum_y K x y * power n' y z else K x z.

(* r-hat, for the pairs in `finite`. *)
Variables (r : S -> S -> R) (finite : rel S).

Definition bounded (u : S -> R) : Prop :=
  (forall z, 0 <= u z) /\
  (forall z z', z != z' -> finite z z' -> u z <= level z z' * r z z' * u z').

(* F(r-hat) <= r-hat, every pair with some number of steps n = m.+1 of its own. *)
Record certificate : Prop := Certificate {
  bound_ge0 : forall x x', 0 <= r x x';
  bound_start : forall x x', x != x' -> finite x x' -> e x <= r x x' * e x';
  bound_step : forall x x', x != x' -> finite x x' -> exists m, forall u, bounded u ->
    most ^+ m * (\sum_z power m x z * u z) <= r x x' * (\sum_z power m x' z * u z) }.

End Endless.

(* docs/theory/sweep.md, Endless series: "If F(r) <= r at a level, then r bounds every node of
   every series whose levels are at most that." A chain that begins in its stationary law. *)
Definition endless_statement : Prop :=
  forall (R : realFieldType) (S : finType) (pi : S -> R) (Q : S -> S -> R),
    (forall x, 0 <= pi x) -> (forall x z, 0 <= Q x z) ->
    (forall x, \sum_z Q x z = 1) -> (forall x, \sum_z pi z * Q z x = pi x) ->
  forall (a b f : R), 1 <= b -> 1 <= f ->
  forall (rR rL : S -> S -> R) (finR finL : rel S),
    certificate Q (fun=> 1) (fun _ _ => f) f rR finR ->
    certificate (fun x z => Q z x) pi (fun _ _ => b) b rL finL ->
  forall (T i k : nat) (levels : seq (window R)) (g : seq S -> R) (x x' : S),
    T = (i + k.+1)%N -> all (@valid R) levels ->
    (forall t, backward levels t <= b) -> (forall t, forward levels t <= f) ->
    own levels i <= a ->
    within T levels g -> 0 < pi x -> 0 < pi x' -> x != x' -> finL x x' -> finR x x' ->
  let P := fun=> Q in
  conditional_mean pi P T i g x
    <= a * (rL x x' * (pi x' / pi x)) * rR x x' * conditional_mean pi P T i g x'.

(** * 5. Functions of a state *)

(* docs/theory/functions-of-a-state.md: "a release does not move between inner states that show
   the same": A[z,z'] = s 1{f(z) <> f(z')} + R[z,z']. Every point pays by itself. *)
Section Shown.
Variables (R : realFieldType) (S : finType) (V : eqType) (observe : S -> V).

(* a j: the charge of the node of depth j for an observed change. *)
Variable a : nat -> R.

Definition level_shown (j : nat) (z z' : S) : R := if observe z == observe z' then 1 else a j.

Fixpoint paid_shown (s s' : seq S) : R :=
  match s, s' with
  | z :: r, z' :: r' => level_shown (size r) z z' * paid_shown r r'
  | _, _ => 1
  end.

End Shown.

(* a t: the charge of time point t of T for an observed change. *)
Definition within_shown (R : realFieldType) (S : finType) (V : eqType) (observe : S -> V)
    (a : nat -> R) (T : nat) (g : seq S -> R) : Prop :=
  (forall s, size s = T -> 0 <= g s) /\
  (forall s s', size s = T -> size s' = T ->
     g s <= paid_shown observe (fun j => a (T - j.+1)%N) s s' * g s').

(* The sweep for functions of a state: observed changes are charged instead of windows. *)
Definition shown_statement : Prop :=
  forall (R : realFieldType) (S : finType) (V : eqType) (observe : S -> V)
    (m : S -> R) (P : nat -> S -> S -> R) (a : nat -> R),
    chain m P -> (forall j, 1 <= a j) ->
  forall (T i k : nat), T = (i + k.+1)%N ->
  forall (occurs : nat -> pred S),
    (forall x, ~~ occurs 0%N x -> m x = 0) ->
    (forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0) ->
  forall (FR FL : nat -> S -> S -> R) (finR finL : nat -> rel S),
    recursion (kernel_right P T) (fun=> 1) (level_shown observe (fun j => a (T - j.+1)%N))
      (fun j => a (T - j.+1)%N) (fun=> predT) FR finR ->
    recursion (kernel_left P) m (level_shown observe a) a occurs FL finL ->
  forall (g : seq S -> R) (x x' : S),
    within_shown observe a T g ->
    occurs i x -> occurs i x' -> x != x' -> finL i x x' -> finR k x x' ->
  partial_mean m P T i g x
    <= level_shown observe a i x x' * FL i x x' * FR k x x' * partial_mean m P T i g x'.

(* docs/theory/functions-of-a-state.md, The secret: "leak(i) = max over shown a <> b of
   L(p_a, p_b; B)", for the values va and vb of the observed function at time point i. `L` is at
   least the optimum of the program over the limits of all pairs of inner states; the laws p_a
   and p_b are in W, which is P(X_i = x) E[g | X_i = x]. *)
Section Secret.
Variables (R : realFieldType) (S : finType) (V : eqType) (observe : S -> V).
Variables (m : S -> R) (P : nat -> S -> S -> R).
Definition observed_probability (T i : nat) (v : V) : R :=
  \sum_(x | observe x == v) probability m P T i x.
Definition observed_mean (T i : nat) (g : seq S -> R) (v : V) : R :=
  (\sum_(x | observe x == v) partial_mean m P T i g x) / observed_probability T i v.
End Secret.

Definition secret_statement : Prop :=
  forall (R : realFieldType) (S : finType) (V : eqType) (observe : S -> V)
    (m : S -> R) (P : nat -> S -> S -> R) (a : nat -> R),
    chain m P -> (forall j, 1 <= a j) ->
  forall (T i k : nat), T = (i + k.+1)%N ->
  forall (occurs : nat -> pred S),
    (forall x, ~~ occurs 0%N x -> m x = 0) ->
    (forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0) ->
  forall (FR FL : nat -> S -> S -> R) (finR finL : nat -> rel S),
    recursion (kernel_right P T) (fun=> 1) (level_shown observe (fun j => a (T - j.+1)%N))
      (fun j => a (T - j.+1)%N) (fun=> predT) FR finR ->
    recursion (kernel_left P) m (level_shown observe a) a occurs FL finL ->
  forall (L : R) (va vb : V),
    (forall W : S -> R, (forall x, 0 <= W x) -> (forall x, ~~ occurs i x -> W x = 0) ->
       (forall x x', occurs i x -> occurs i x' -> x != x' -> finL i x x' -> finR k x x' ->
          W x <= level_shown observe a i x x' * FL i x x' * FR k x x' * W x') ->
       \sum_(x | observe x == va) W x <= L * (\sum_(x | observe x == vb) W x)) ->
  forall (g : seq S -> R),
    within_shown observe a T g ->
    0 < observed_probability observe m P T i va -> 0 < observed_probability observe m P T i vb ->
  observed_mean observe m P T i g va
    <= L * (observed_probability observe m P T i vb / observed_probability observe m P T i va) *
       observed_mean observe m P T i g vb.

(** * 6. Episodes *)

Section Episodes.
Variables (R : realFieldType) (S : finType) (m : S -> R) (P : nat -> S -> S -> R).

(* The episode that begins at time point i has the states w: its probability, and the
   conditional mean of g over all series of T states with this episode. *)
Definition episode_probability (T i : nat) (w : seq S) : R :=
  \sum_(s : T.-tuple S | content i (i + (size w).-1) s == w) law m P s.
Definition episode_mean (T i : nat) (g : seq S -> R) (w : seq S) : R :=
  (\sum_(s : T.-tuple S | content i (i + (size w).-1) s == w) law m P s * g s)
    / episode_probability T i w.

(* CL is at least max(0, max B'_i), CR at least max(0, max R_j), as factors; each maximum is over
   the pairs of different possible states at its own end of the episode i..j. *)
Definition end_bounds (T i j k : nat) (FL FR : nat -> S -> S -> R) (finL finR : nat -> rel S)
    (CL CR : R) : Prop :=
  [/\ 1 <= CL, 1 <= CR,
    forall x x', x != x' -> 0 < probability m P T i x -> 0 < probability m P T i x' ->
      finL i x x' /\ FL i x x' * (probability m P T i x' / probability m P T i x) <= CL &
    forall z z', z != z' -> 0 < probability m P T j z -> 0 < probability m P T j z' ->
      finR k z z' /\ FR k z z' <= CR].

End Episodes.

(* docs/theory/sweep.md, Episodes: "leak <= d({i..j}) + max(0, max B'_i) + max(0, max R_j)", with
   "d({i..j}) = a_i + f_{i+1} + ... + f_j". The secret is all of X_i..X_j, j = i + n, and any two
   assignments of positive probability are compared; they may agree at either end. *)
Definition episode_statement : Prop :=
  forall (R : realFieldType) (S : finType) (m : S -> R) (P : nat -> S -> S -> R),
    chain m P -> (forall t x, \sum_z P t x z = 1) ->
  forall (T i n k : nat) (levels : seq (window R)),
    T = (i + (n + k).+1)%N -> all (@valid R) levels ->
  forall (occurs : nat -> pred S),
    (forall x, ~~ occurs 0%N x -> m x = 0) ->
    (forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0) ->
  forall (FR FL : nat -> S -> S -> R) (finR finL : nat -> rel S),
    recursion (kernel_right P T) (fun=> 1) (fun j _ _ => begins levels T j)
      (begins levels T) (fun=> predT) FR finR ->
    recursion (kernel_left P) m (fun j _ _ => backward levels j) (backward levels)
      occurs FL finL ->
  forall (CL CR : R) (g : seq S -> R) (w w' : seq S),
    end_bounds m P T i (i + n) k FL FR finL finR CL CR ->
    within T levels g -> size w = n.+1 -> size w' = n.+1 ->
    0 < episode_probability m P T i w -> 0 < episode_probability m P T i w' ->
  episode_mean m P T i g w
    <= own levels i * (\prod_(i.+1 <= t < (i + n).+1) forward levels t) * CL * CR *
       episode_mean m P T i g w'.

(* docs/theory/functions-of-a-state.md, Episodes: "every pair of inner states counts" at the ends.
   Every point of the episode may pay, whatever it observe. *)
Definition episode_shown_statement : Prop :=
  forall (R : realFieldType) (S : finType) (V : eqType) (observe : S -> V)
    (m : S -> R) (P : nat -> S -> S -> R) (a : nat -> R),
    chain m P -> (forall t x, \sum_z P t x z = 1) -> (forall j, 1 <= a j) ->
  forall (T i n k : nat), T = (i + (n + k).+1)%N ->
  forall (occurs : nat -> pred S),
    (forall x, ~~ occurs 0%N x -> m x = 0) ->
    (forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0) ->
  forall (FR FL : nat -> S -> S -> R) (finR finL : nat -> rel S),
    recursion (kernel_right P T) (fun=> 1) (level_shown observe (fun j => a (T - j.+1)%N))
      (fun j => a (T - j.+1)%N) (fun=> predT) FR finR ->
    recursion (kernel_left P) m (level_shown observe a) a occurs FL finL ->
  forall (CL CR : R) (g : seq S -> R) (w w' : seq S),
    end_bounds m P T i (i + n) k FL FR finL finR CL CR ->
    within_shown observe a T g -> size w = n.+1 -> size w' = n.+1 ->
    0 < episode_probability m P T i w -> 0 < episode_probability m P T i w' ->
  episode_mean m P T i g w
    <= (\prod_(i <= t < (i + n).+1) a t) * CL * CR * episode_mean m P T i g w'.

(** * 7. Sets of matrices: the contraction step *)

(* docs/theory/sweep.md, Sets of matrices: tanh(L/4) <= tanh(Delta/4) tanh(alpha/4). With
   d = e^(Delta/2) and e = e^(alpha/2) this is e^L <= ((1 + d e) / (d + e))^2. All cross-ratios of
   the rows are at most d^2, all limits at most e^2. *)
Definition contraction_statement : Prop :=
  forall (R : realFieldType) (S : finType) (p q u : S -> R) (d e : R),
    1 <= d -> 1 <= e ->
    (forall z, 0 <= p z) -> (forall z, 0 <= q z) -> \sum_z p z = 1 -> \sum_z q z = 1 ->
    (forall z z', p z * q z' <= d ^+ 2 * (p z' * q z)) ->
    (forall z, 0 <= u z) -> (forall z z', u z <= e ^+ 2 * u z') ->
  \sum_z p z * u z <= ((1 + d * e) / (d + e)) ^+ 2 * \sum_z q z * u z.

(* docs/theory/sweep.md, Sets of matrices: "R_t = min_n (sum f_u + L) with alpha = f_{t+n} + R_{t+n},
   one number for all pairs", for every sequence of matrices K from the set: d m ^ 2 bounds all
   cross-ratios of products of m.+1 of them. To the left K are the backward kernels of any start,
   whose cross-ratios are those of the matrices. *)
Definition box_statement : Prop :=
  forall (R : realFieldType) (S : finType) (K : nat -> S -> S -> R)
    (D : seq S -> seq S -> R) (f : nat -> S -> S -> R) (g : nat -> R),
    (forall j x z, 0 <= K j x z) -> (forall j x, \sum_z K j x z = 1) -> charges D f g ->
  forall (F d e : nat -> R),
    (forall m, 1 <= d m) -> (forall j, 1 <= e j) -> (forall j, g j * F j <= e j ^+ 2) ->
    (forall m j x x' z z', steps K m j x z * steps K m j x' z'
       <= d m ^+ 2 * (steps K m j x z' * steps K m j x' z)) ->
    1 <= F 0%N ->
    (forall k, exists m j, k = (m + j)%N /\
       (\prod_(j.+1 <= i < (m + j).+1) g i) * ((1 + d m * e j) / (d m + e j)) ^+ 2 <= F k.+1) ->
  forall k x x' h, x != x' -> nonnegative k h -> moves_by D k h ->
    beyond K (fun=> 1) k x h <= F k * beyond K (fun=> 1) k x' h.

(** * 8. Trade-offs: Gaussian noise and (epsilon, delta) *)

(* A curve bounds H_c(P || Q), the largest P(E) - c Q(E) over all events E, for every c > 0. *)
Definition divergence_le (R : realFieldType) (O : finType) (P Q : O -> R) (a : R -> R) : Prop :=
  forall (E : pred O) (c : R), 0 < c -> \sum_(o | E o) P o - c * (\sum_(o | E o) Q o) <= a c.

(* p - c q <= (a o b)(c) for all c > 0: "(a o b)(c) = min over c1 c2 = c of a(c1) + c1 b(c2)". *)
Definition composed (R : realFieldType) (a b : R -> R) (p q : R) : Prop :=
  forall c1 c2, 0 < c1 -> 0 < c2 -> p - c1 * c2 * q <= a c1 + c1 * b c2.

(* docs/theory/f-sweep.md, the two rules: composition, and complement. *)
Definition tradeoff_rules_statement : Prop :=
  forall (R : realFieldType) (O : finType) (P Q U : O -> R) (a b : R -> R),
    (divergence_le P Q a -> divergence_le Q U b ->
      forall E : pred O, composed a b (\sum_(o | E o) P o) (\sum_(o | E o) U o)) /\
    (\sum_o P o = 1 -> \sum_o Q o = 1 -> divergence_le Q P b ->
      divergence_le P Q (fun c => 1 - c + c * b c^-1)).

Section Program.
Variables (R : realFieldType) (S : finType) (occurs : pred S).

(* What a program constrains: u_z in [0, 1], u_z <= c u_w + J[z,w](c) with J the lesser of g o r
   and r o g, between states that occur. *)
Definition constrained (g r : S -> S -> R -> R) (u : S -> R) : Prop :=
  (forall z, occurs z -> 0 <= u z <= 1) /\
  (forall z w, occurs z -> occurs w -> z != w ->
     composed (g z w) (r z w) (u z) (u w) /\ composed (r z w) (g z w) (u z) (u w)).

(* The program ( * ): `value` is at least its optimum at c. *)
Definition program_le (g r : S -> S -> R -> R) (p q : S -> R) (c value : R) : Prop :=
  forall u, constrained g r u ->
    \sum_(z | occurs z) p z * u z - c * (\sum_(z | occurs z) q z * u z) <= value.

End Program.

(* r k bounds the futures (or the pasts) of a node with k nodes beyond it: "r_T = 0 (equal laws:
   H_c = (1 - c)^+)", and a step of the program otherwise. A single curve above its own step is
   the case where r k is the same for all k. *)
Definition tradeoff_recursion (R : realFieldType) (S : finType) (K : nat -> S -> S -> R)
    (occurs : nat -> pred S) (g r : nat -> S -> S -> R -> R) : Prop :=
  forall k x x' c, occurs k x -> occurs k x' -> x != x' -> 0 < c ->
    if k is j.+1 then program_le (occurs j) (g j) (r j) (K j x) (K j x') c (r k x x' c)
    else 0 <= r 0%N x x' c /\ 1 - c <= r 0%N x x' c.

Section TradeoffChain.
Variables (R : realFieldType) (S O : finType) (m : S -> R) (P : nat -> S -> S -> R).

(* m_t, and the kernels to the left, m_t(z) P_t(z,x) / m_{t+1}(x). *)
Fixpoint law_at (t : nat) (x : S) : R :=
  if t is j.+1 then \sum_z law_at j z * P j z x else m x.
Definition kernel_past (j : nat) (x z : S) : R := law_at j z * P j z x / law_at j.+1 x.

(* M s: the law of all releases together on the data s. "For any two sequences that differ at t
   only, z there in the one and w in the other". *)
Definition tradeoff_levels (T : nat) (g : nat -> S -> S -> R -> R) (M : seq S -> O -> R) : Prop :=
  [/\ forall s o, size s = T -> 0 <= M s o,
      forall s, size s = T -> \sum_o M s o = 1 &
      forall b s z w, (size b + (size s).+1)%N = T -> z != w ->
        divergence_le (M (b ++ z :: s)) (M (b ++ w :: s)) (g (size b) z w)].

(* What is released if X_i = x. *)
Definition released (T i : nat) (M : seq S -> O -> R) (x : S) (o : O) : R :=
  conditional_mean m P T i (fun s => M s o) x.

(* H(A || B) <= a o b o d. *)
Definition composed3 (a b d : R -> R) (A B : O -> R) : Prop :=
  forall (E : pred O) c1 c2 c3, 0 < c1 -> 0 < c2 -> 0 < c3 ->
    \sum_(o | E o) A o - c1 * c2 * c3 * (\sum_(o | E o) B o)
      <= a c1 + c1 * b c2 + c1 * c2 * d c3.

End TradeoffChain.

(* docs/theory/f-sweep.md, Theorem: "the least over the six orders of (g_i o r_i o l_i)", for any
   event of any releases together, adaptive ones included, whose levels are fixed beforehand. *)
Definition tradeoff_statement : Prop :=
  forall (R : realFieldType) (S O : finType) (m : S -> R) (P : nat -> S -> S -> R),
    chain m P -> (forall t x, \sum_z P t x z = 1) ->
  forall (T i k : nat), T = (i + k.+1)%N ->
  forall (g r l : nat -> S -> S -> R -> R) (M : seq S -> O -> R),
    tradeoff_levels T g M ->
    tradeoff_recursion (kernel_right P T) (fun=> predT) (fun j => g (T - j.+1)%N) r ->
    tradeoff_recursion (kernel_past m P) (fun t x => 0 < law_at m P t x) g l ->
  forall (x x' : S), x != x' -> 0 < law_at m P i x -> 0 < law_at m P i x' ->
  let A := released m P T i M x in
  let B := released m P T i M x' in
  let own := g i x x' in let right := r k x x' in let left := l i x x' in
  [/\ composed3 own right left A B /\ composed3 own left right A B,
      composed3 right own left A B /\ composed3 left own right A B &
      composed3 right left own A B /\ composed3 left right own A B].

(* docs/theory/f-sweep.md, Product coupling: with eta = sum of (p - c q)^+ and b = sum of
   (p - c q)^-, (p - c q).u <= sum over z, w of (c_z^+ c_w^- / b) J[z,w](b / eta), at most eta
   whatever is released later; and with one curve J for all pairs eta J(1 + (c - 1) / eta). *)
Definition scalar_statement : Prop :=
  forall (R : realFieldType) (S : finType) (p q u : S -> R) (c : R) (J : S -> S -> R) (J1 : R),
    let above z := Num.max (p z - c * q z) 0 in
    let below z := Num.max (c * q z - p z) 0 in
    let eta := \sum_z above z in
    let b := \sum_z below z in
    let value := \sum_z p z * u z - c * (\sum_z q z * u z) in
    (forall z, 0 <= u z <= 1) ->
  [/\ value <= eta,
      0 < eta -> 0 < b -> (forall z w, z != w -> u z - b / eta * u w <= J z w) ->
        value <= \sum_z \sum_w (above z * below w / b * J z w) &
      \sum_z p z = 1 -> \sum_z q z = 1 -> 1 <= c -> 0 < eta ->
        (forall z w, z != w -> u z - (1 + (c - 1) / eta) * u w <= J1) ->
        value <= eta * J1].

(** * 9. Quilts: the influence curve *)

(* docs/theory/influence-curve.md, Theorem 1. The data are (x_i, the rest n of the nearby set,
   the quilt q, the remote nodes r) under a law `mu`; M is the probability of one transcript.
   The quilt separates: r is independent of x_i given q, written without division; its influence
   is at most e^influence = I; changing the nearby set costs a factor of at most c. *)
Definition quilt_statement : Prop :=
  forall (R : realFieldType) (X N Q Z : finType) (mu M : X -> N -> Q -> Z -> R) (c I : R)
    (x x' : X),
    let joint x q r := \sum_n mu x n q r in          (* P(x, q, r) *)
    let node_quilt x q := \sum_r joint x q r in      (* P(x, q) *)
    let node x := \sum_q node_quilt x q in           (* P(x) *)
    let quilt_rest q r := \sum_x joint x q r in      (* P(q, r) *)
    let quilt q := \sum_r quilt_rest q r in          (* P(q) *)
    let likelihood x := \sum_n \sum_q \sum_r mu x n q r * M x n q r in
    (forall x n q r, 0 <= mu x n q r) -> (forall x n q r, 0 <= M x n q r) ->
    0 <= c -> 0 <= I ->
    (forall x q r, joint x q r * quilt q = node_quilt x q * quilt_rest q r) ->
    (forall q, node_quilt x q * node x' <= I * (node_quilt x' q * node x)) ->
    (forall n n' q r, M x n q r <= c * M x' n' q r) ->
    0 < node x -> 0 < node x' ->
  likelihood x / node x <= c * I * (likelihood x' / node x').

(* docs/theory/influence-curve.md, Theorem 2, for one node: the least of lines with intercepts at
   least 0 is subadditive, which is Theorem 3.7 of the paper. `size` is |N_Q|, `infl` e(Q|i). *)
Definition curve_statement : Prop :=
  forall (R : realFieldType) (Q : finType) (size infl : Q -> R) (f : R -> R),
    (forall Q, 0 <= infl Q) ->
    (forall x, 0 <= x -> (forall Q, f x <= size Q * x + infl Q) /\
                         (exists Q, f x = size Q * x + infl Q)) ->
    (forall x, 0 <= x -> 0 <= f x) ->
  forall x y, 0 <= x -> 0 <= y -> f (x + y) <= f x + f y.

(** * 10. m-privacy *)

Section Privacy.
Variables (P Rec : finType) (owner : Rec -> P) (group : {set Rec}).

(* docs/theory/m-privacy.md, Setting. A coalition I knows its records of the group. *)
Definition known (I : {set P}) : {set Rec} := [set r in group | owner r \in I].
Definition left_by (I : {set P}) : {set Rec} := group :\: known I.

(* Definition 2.1, for the coalitions of at most m of the providers in P. *)
Definition withstands (m : nat) (C : pred {set Rec}) : Prop :=
  forall (I : {set P}) (T : {set Rec}),
    (#|I| <= m)%N -> left_by I \subset T -> T \subset group -> C T.

(* EG monotonic. *)
Definition monotone (C : pred {set Rec}) : Prop :=
  forall T U : {set Rec}, T \subset U -> U \subset group -> C T -> C U.

Definition size_of (p : P) : nat := #|[set r in group | owner r == p]|.

End Privacy.

(* Observation 2.3: only whole coalitions of the largest size need a check. Observation 2.2: a
   conjunction of any constraints is breached if and only if one of its parts is. *)
Definition pruning_statement : Prop :=
  forall (P Rec : finType) (owner : Rec -> P) (group : {set Rec}) (m : nat),
    (forall C, monotone group C -> (m <= #|P|)%N ->
       (withstands owner group m C <->
        forall I : {set P}, #|I| = m -> C (left_by owner group I))) /\
    (forall C C', withstands owner group m (fun T => C T && C' T) <->
       withstands owner group m C /\ withstands owner group m C').

(* "A group is breached if and only if removing its m' largest providers leaves fewer than k
   records." *)
Definition k_anonymity_statement : Prop :=
  forall (P Rec : finType) (owner : Rec -> P) (group : {set Rec}) (m k : nat)
    (largest : {set P}),
    (m <= #|P|)%N -> #|largest| = m ->
    (forall p q, p \in largest -> q \notin largest ->
       (size_of owner group q <= size_of owner group p)%N) ->
  (withstands owner group m (fun T => (k <= #|T|)%N) <->
   (k <= #|left_by owner group largest|)%N).

(** * 11. The holdout by counting *)

(* Answers so far: None from the training set, Some v from the holdout, one of #|G| values. *)
Definition rounds (G : finType) (t : seq (option G)) : nat := count isSome t.

(* docs/theory/counting.md: the questions that can come up, and the union bound over them. `bad t
   w`: the question asked after the answers t fails on the holdout w; `answers w i`: the answers
   that an analyst with fixed coins has there before the i-th question. No independence is used. *)
Definition counting_statement : Prop :=
  forall (G : finType) (m B : nat),
    let N := (\sum_(b < B) 'C(m, b.+1) * #|G| ^ b)%N in
    (\sum_(i < m) #|[set t : i.-tuple (option G) | rounds t < B]|)%N = N /\
    forall (R : realFieldType) (Omega : finType) (mu : Omega -> R) (delta : R)
      (bad : seq (option G) -> pred Omega) (answers : Omega -> forall i, i.-tuple (option G)),
      (forall w, 0 <= mu w) -> (forall t, \sum_(w | bad t w) mu w <= delta) ->
    \sum_(w | [exists i : 'I_m, (rounds (answers w i) < B)%N && bad (answers w i) w]) mu w
      <= N%:R * delta.

(** * 12. Exact sampling *)

(* src/quiltwork/noise/finite_law.py, `Thresholds.outcome`: enclosures (lo, hi) of the thresholds at
   some number of bits, compared in order with the bits that are revealed, as an integer v. *)
Fixpoint decide (cells : seq (nat * nat)) (v : nat) : option nat :=
  if cells is (lo, hi) :: others then
    if (v < lo)%N then Some 0%N else if (v < hi)%N then None else omap S (decide others v)
  else Some 0%N.

(* `SamplingTable.outcome`: words are revealed one by one until the revealed ones decide. V stands
   for D words together; the first d of them are V %/ N^(D - d), N the number of words. *)
Definition outcome (N D : nat) (cells : nat -> seq (nat * nat)) (V : nat) : option nat :=
  ohead (pmap (fun d => decide (cells d) (V %/ N ^ (D - d))) (iota 1 D)).

(* docs/theory/exact-sampling.md, Lemma 1: after D uniform words, outcome j was returned with a
   probability of at most t_j - t_{j-1}, and of that less at most m w / N^D, which vanishes as D
   grows: w bounds the widths of the m enclosures. *)
Definition table_statement : Prop :=
  forall (R : realFieldType) (m N D w : nat) (t : nat -> R) (cells : nat -> seq (nat * nat)),
    let upper j := if (j < m)%N then t j else 1 in
    let lower j := if j is i.+1 then t i else 0 in
    (0 < N)%N -> (0 < D)%N ->
    (forall j, (j <= m)%N -> 0 <= lower j /\ lower j <= upper j /\ upper j <= 1) ->
    (forall d, size (cells d) = m) ->
    (forall d j, (j < m)%N -> let c := nth (0, 0)%N (cells d) j in
       [/\ c.1%:R <= (N ^ d)%:R * t j, (N ^ d)%:R * t j <= c.2%:R & (c.2 <= c.1 + w)%N]) ->
  forall j, (j <= m)%N ->
    let returned := #|[set V : 'I_(N ^ D) | outcome N D cells V == Some j]|%:R in
    returned <= (N ^ D)%:R * (upper j - lower j) /\
    (N ^ D)%:R * (upper j - lower j) - (m * w)%:R <= returned :> R.

Section Digits.
Variable R : realFieldType.

Definition geometric (a : R) (g : nat) : R := (1 - a) * a ^+ g.
(* The table of a digit: P(digit <= d) = (1 - a^(d+1)) / (1 - a^B). *)
Definition digit_upto (a : R) (B d : nat) : R := (1 - a ^+ d.+1) / (1 - a ^+ B).
Definition digit (a : R) (B d : nat) : R :=
  digit_upto a B d - if d is e.+1 then digit_upto a B e else 0.

(* Digits in the bases `bases`, each from its own table, and what is left of g from a geometric
   law: the probability of them all together. *)
Fixpoint by_digits (a : R) (bases : seq nat) (g : nat) : R :=
  if bases is B :: others then digit a B (g %% B) * by_digits (a ^+ B) others (g %/ B)
  else geometric a g.

(* Zero or not from one table, then a fair sign, and 1 + g from its digits. *)
Definition two_sided (a : R) (bases : seq nat) (z : int) : R :=
  if z == 0 then 1 - 2%:R * a / (1 + a)
  else 2%:R * a / (1 + a) * 2%:R^-1 * by_digits a bases `|z|.-1.

End Digits.

(* docs/theory/exact-sampling.md, Lemma 2 and the theorem on two-sided geometric noise. *)
Definition two_sided_statement : Prop :=
  forall (R : realFieldType) (a : R) (bases : seq nat), 0 <= a < 1 -> all (leq 1) bases ->
    (forall g, by_digits a bases g = geometric a g) /\
    (forall z : int, two_sided a bases z = (1 - a) / (1 + a) * a ^+ `|z|).
